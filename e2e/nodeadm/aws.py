#!/usr/bin/python3
"""What nodeadm asks of AWS besides the metadata service, at ADDRESS:PORT:

    aws.py ADDRESS PORT ARCHIVE

    ECR   GetAuthorizationToken
    EC2   DescribeInstanceTypes, which its table of February 2024 may not know
    a registry that holds one image, from an OCI archive, under every name and tag
"""
import http.server
import json
import sys
import tarfile

# ENIs and addresses of each, of the one type that is asked for.
INSTANCE_TYPES = """<?xml version="1.0" encoding="UTF-8"?>
<DescribeInstanceTypesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
  <instanceTypeSet><item>
    <instanceType>m8g.large</instanceType>
    <networkInfo>
      <maximumNetworkInterfaces>3</maximumNetworkInterfaces>
      <ipv4AddressesPerInterface>10</ipv4AddressesPerInterface>
    </networkInfo>
  </item></instanceTypeSet>
</DescribeInstanceTypesResponse>
"""
# `AWS:` and a password that opens nothing.
TOKEN = {"authorizationData": [{"authorizationToken": "QVdTOm5vdGhpbmc="}]}


def image(archive):
    """The blobs of an OCI archive by digest, and the descriptor of its only manifest."""
    with tarfile.open(archive) as files:
        read = {entry.name.removeprefix("./"): files.extractfile(entry) for entry in files if entry.isfile()}
        content = {name: file.read() for name, file in read.items()}
    blobs = {name.split("/")[-1]: data for name, data in content.items() if name.startswith("blobs/")}
    return blobs, json.loads(content["index.json"])["manifests"][0]


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if "GetAuthorizationToken" in self.headers.get("X-Amz-Target", ""):
            self.send("application/x-amz-json-1.1", json.dumps(TOKEN).encode())
        elif "Action=DescribeInstanceTypes" in body:
            self.send("text/xml", INSTANCE_TYPES.encode())
        else:
            self.send_error(400)

    def do_GET(self):
        blobs, manifest = self.server.image
        kind, _, name = self.path.partition("?")[0].rpartition("/")
        if kind.endswith("/manifests"):
            digest = manifest["digest"]
            self.send(manifest["mediaType"], blobs[digest.split(":")[-1]], digest)
        elif kind.endswith("/blobs") and name.split(":")[-1] in blobs:
            self.send("application/octet-stream", blobs[name.split(":")[-1]], name)
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def send(self, media_type, body, digest=None):
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


server = http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Answer)
server.image = image(sys.argv[3])
print("ready", flush=True)
server.serve_forever()
