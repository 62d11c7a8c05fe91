#!/usr/bin/env python3
"""Where the CPU of a recording of `perf` went, as JSON lines: the share of each process, and of each room of
the code in the processes of Stepfleet. Reads `perf script -F comm,ip,sym` from standard input.

A sample in the kernel counts for what the kernel was asked for, which its stack tells reliably. A sample in the
program counts for the function it was in: without frame pointers, stacks of optimised code are not to be trusted."""

import collections
import json
import re
import sys

# First match counts. The kernel's names stand anywhere in the stack.
KERNEL = [
    ("fresh memory (page faults)", r"exc_page_fault|do_user_addr_fault|handle_mm_fault"),
    ("memory given back", r"madvise|munmap|zap_p"),
    ("disk: sync", r"fsync|fdatasync|sync_file"),
    ("disk: write", r"sys_p?write|ext4|blk_"),
    ("disk: read", r"sys_p?read\w*64|filemap_read"),
    ("network", r"tcp_|sock_|inet_|sys_send|sys_recv|unix_stream|net_rx"),
    ("waking and waiting", r"futex|epoll|eventfd|sched|timer|do_idle|poll"),
]
# The program's names: the function of the sample itself.
PROGRAM = [
    ("allocator", r"^_?mi_|malloc|^free$|alloc::alloc"),
    ("SQLite", r"^sqlite3|^wal[A-Z]|^pager|^btree|^json[A-Z]|^vdbe|^pcache|sqlx_sqlite"),
    ("PostgreSQL's client", r"sqlx_postgres|tokio_postgres"),
    ("AMQP", r"lapin|amq_protocol|pinky_swear"),
    ("archive (LanceDB)", r"lance|arrow|datafusion|parquet|object_store|zstd|lz4"),
    ("JSON", r"serde_json|serde|itoa|ryu"),
    ("base64, hashes and sums", r"base64|CodePoint|sha2|digest|sip::|md5|crc32"),
    ("HTTP", r"hyper|axum|tower|http::|httparse"),
    ("tokio", r"tokio|mio::|futures_"),
    ("decisions (domain)", r"domain::"),
    ("worker", r"worker::"),
    ("dispatcher", r"dispatcher::"),
    ("store", r"store::|sqlx"),
    ("history", r"history::"),
    ("broker", r"broker::"),
    ("copying", r"memmove|memcpy|memset|memcmp"),
]


def samples(lines):
    """Each sample: the name of its thread, and the functions of its stack from the inside out."""
    thread, stack = None, []
    for line in lines:
        if not line.strip():
            if thread is not None and stack:
                yield thread, stack
            thread, stack = None, []
        elif line[0].isspace():
            stack.append(line.strip().partition(" ")[2])
        else:
            thread = line.strip()
    if thread is not None and stack:
        yield thread, stack


def in_kernel(line_of_address):
    return line_of_address.startswith("ffffffff")


def room(stack, kernel):
    """What a sample counts for."""
    rules, names = (KERNEL, " ".join(stack)) if kernel else (PROGRAM, stack[0])
    return next((name for name, pattern in rules if re.search(pattern, names)), "kernel: rest" if kernel else "rest")


def main():
    processes, rooms = collections.Counter(), collections.Counter()
    ours = re.compile(sys.argv[1] if len(sys.argv) > 1 else ".")
    lines = (line.rstrip("\n") for line in sys.stdin)
    for thread, stack in samples(mark(lines)):
        kernel = stack[0].startswith("[k] ")
        processes[thread] += 1
        if ours.search(thread):
            rooms[room([name.removeprefix("[k] ") for name in stack], kernel)] += 1
    report("process", processes)
    report("room", rooms)


def mark(lines):
    """The same lines, functions of the kernel marked: their addresses tell, which `samples` drops."""
    for line in lines:
        address, _, name = line.strip().partition(" ")
        yield f"\t{address} [k] {name}" if line[:1].isspace() and in_kernel(address) else line


def report(kind, counted):
    whole = sum(counted.values())
    for name, count in counted.most_common():
        if count / whole >= 0.005:
            print(json.dumps({"profile": kind, "name": name, "share": round(count / whole, 3), "samples": count}))


if __name__ == "__main__":
    main()
