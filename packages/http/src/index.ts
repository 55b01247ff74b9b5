/** The HTTP side of Sluice: the server, authentication, routes, event streams and OpenAPI. The server is at `@sluice/http/listen`. */
export { createAuth } from './auth.ts'
