"""Verifies the DKIM signatures of mails by programs that have nothing of ours.

usage: unshare -rmn python3 verify.py FOLDER

FOLDER holds keys.json, which is the TXT records by name, and mails named *.eml.
Each mail gets one line of JSON:

    {"file": "1.eml", "opendkim": "", "dkimpy": [{"a": "rsa-sha256", "d": "example.com", "h": ["from"], "ok": true}]}

opendkim is what opendkim-testmsg said, which is nothing when it is content. It
asks the system's DNS server: so this runs in a network and with a resolv.conf of
its own, and is that server too.
"""

import fcntl
import glob
import json
import os
import socket
import struct
import subprocess
import sys
import threading

import dkim


def raise_loopback():
    siocgifflags, siocsifflags, iff_up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(s, siocgifflags, request))[1]
        fcntl.ioctl(s, siocsifflags, struct.pack("16sH14s", b"lo", flags | iff_up, b""))


def use_own_resolver(folder):
    path = os.path.join(folder, "resolv.conf")
    with open(path, "w") as f:
        f.write("nameserver 127.0.0.1\n")
    subprocess.run(["mount", "--bind", path, "/etc/resolv.conf"], check=True)


def answer(query, records):
    """answer is the reply to a DNS query for a TXT record (RFC 1035)."""
    name, at = [], 12
    while query[at]:
        name.append(query[at + 1 : at + 1 + query[at]].decode("ascii"))
        at += 1 + query[at]
    question = query[12 : at + 5]
    value = records.get(".".join(name).lower())
    if value is None:
        return query[:2] + struct.pack(">HHHHH", 0x8583, 1, 0, 0, 0) + question
    text = value.encode("ascii")
    data = b"".join(bytes([len(text[i : i + 255])]) + text[i : i + 255] for i in range(0, len(text), 255))
    head = query[:2] + struct.pack(">HHHHH", 0x8580, 1, 1, 0, 0)
    return head + question + struct.pack(">HHHIH", 0xC00C, 16, 1, 60, len(data)) + data


def serve_dns(records):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 53))

    def run():
        while True:
            query, client = s.recvfrom(4096)
            s.sendto(answer(query, records), client)

    threading.Thread(target=run, daemon=True).start()


def by_dkimpy(mail, records):
    def txt(name, timeout=5):
        value = records.get(name.decode("ascii").rstrip(".").lower())
        return value and value.encode("ascii")

    found = []
    while True:
        d = dkim.DKIM(mail)
        signatures = [value for name, value in d.headers if name.lower() == b"dkim-signature"]
        if len(found) == len(signatures):
            return found
        try:
            ok = d.verify(idx=len(found), dnsfunc=txt)
        except dkim.DKIMException as e:
            found.append({"ok": False, "error": str(e)})
            continue
        fields = d.signature_fields
        names = [name.strip().lower().decode() for name in fields[b"h"].split(b":")]
        found.append({"a": fields[b"a"].decode(), "d": fields[b"d"].decode(), "h": names, "ok": bool(ok)})


def by_opendkim(mail):
    done = subprocess.run(["opendkim-testmsg"], input=mail, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode and not done.stdout:
        return "exit status %d" % done.returncode
    return done.stdout.decode("utf-8", "replace").strip()


def main(folder):
    with open(os.path.join(folder, "keys.json")) as f:
        records = json.load(f)
    raise_loopback()
    use_own_resolver(folder)
    serve_dns(records)
    for path in sorted(glob.glob(os.path.join(folder, "*.eml"))):
        with open(path, "rb") as f:
            mail = f.read()
        said = {"file": os.path.basename(path), "opendkim": by_opendkim(mail), "dkimpy": by_dkimpy(mail, records)}
        print(json.dumps(said), flush=True)


main(sys.argv[1])
