"""An extension server: answers of hosts below a domain get a header that says whose they are.

    pip install grpcio grpcio-tools
    python -m grpc_tools.protoc -I../../api/extension/v1alpha1 --python_out=. --grpc_python_out=. extension.proto
    python server.py unix:///tmp/extension.sock
"""

import json
import sys
from concurrent import futures

import grpc

import extension_pb2
import extension_pb2_grpc

TENANTS = {"shop.example.com": "gold", "blog.example.com": "silver"}


class Server(extension_pb2_grpc.ExtensionServicer):
    def Change(self, request, context):
        tenant = TENANTS.get(request.name)
        if request.hook != extension_pb2.HOOK_VIRTUAL_HOST or tenant is None:
            return extension_pb2.ChangeResponse()  # as it is
        host = json.loads(request.json)
        headers = host.get("response_headers_to_add", [])
        headers.append({"header": {"key": "x-tenant", "value": tenant}})
        patch = [{"op": "add", "path": "/response_headers_to_add", "value": headers}]
        return extension_pb2.ChangeResponse(patch=json.dumps(patch))


def main(address):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
    extension_pb2_grpc.add_ExtensionServicer_to_server(Server(), server)
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(sys.argv[1])
