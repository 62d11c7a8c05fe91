# A server of the S3 protocol in memory, for tests: python s3.py ENV_FILE BUCKET PARENT.
#
# Serves on a free port of 127.0.0.1, makes the bucket, writes the settings to reach it, and ends,
# together with its directory, when the process PARENT has gone (0: never). A second bucket,
# "careless", ignores conditional writes, as some stores do. One request at a time, so that a
# condition and its write are one.

import os
import secrets
import sys
import threading
import urllib.request

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

# Nothing compiled is left beside the sources.
sys.dont_write_bytecode = True
from served import announce, end_with

CARELESS = "careless"


class Quiet(WSGIRequestHandler):
    def log_request(self, *args):
        pass


def careless(app):
    def serve(environ, start_response):
        if environ.get("PATH_INFO", "").startswith(f"/{CARELESS}/"):
            environ.pop("HTTP_IF_NONE_MATCH", None)
        return app(environ, start_response)

    return serve


def main():
    env_file, bucket, parent = sys.argv[1], sys.argv[2], int(sys.argv[3])
    # Nothing here is for the network, whatever the environment of the caller says.
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        os.environ.pop(name, None)
    app = careless(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, request_handler=Quiet)
    threading.Thread(target=server.serve_forever).start()
    url = f"http://127.0.0.1:{server.server_port}"
    for name in (bucket, CARELESS):
        urllib.request.urlopen(urllib.request.Request(f"{url}/{name}", method="PUT"), timeout=30).close()
    lines = {
        "STEPFLEET_HISTORY_URI": f"s3://{bucket}/history",
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": secrets.token_hex(10),
        "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),
    }
    announce(env_file, lines)
    end_with(parent, env_file)


main()
