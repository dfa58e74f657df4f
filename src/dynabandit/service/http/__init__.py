"""HTTP: routes, request bodies, status codes, limits and the OpenAPI document."""
