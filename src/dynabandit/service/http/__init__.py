"""HTTP: server, routes, handlers, requests, responses and status codes. Nothing else knows a status code."""
