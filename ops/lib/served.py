# What servers for tests have in common: they say where they serve, and end with whoever started them.

import os
import threading
import time


def announce(env_file, lines):
    """Writes `export NAME=VALUE` for each line: whole or not at all, and for its owner's eyes only."""
    fresh = f"{env_file}.new"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.writelines(f"export {name}={value}\n" for name, value in lines.items())
    os.rename(fresh, env_file)


def end_with(parent, env_file):
    """Ends this process, together with the directory of `env_file`, once the process `parent` has gone (0: never)."""
    if parent:
        threading.Thread(target=_watch, args=(parent, env_file), daemon=True).start()


def _watch(parent, env_file):
    while os.path.exists(f"/proc/{parent}"):
        time.sleep(1)
    directory, name = os.path.split(env_file)
    try:
        # What `ops/` and the server itself have put there; whatever else is there stays.
        for ending in ("env", "pid", "log"):
            os.unlink(os.path.join(directory, f"{name.removesuffix('.env')}.{ending}"))
        os.rmdir(directory)
    finally:
        os._exit(0)
