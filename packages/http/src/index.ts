/** The HTTP side of Sluice: the server, authentication, routes, event streams and OpenAPI. The server is at `@sluice/http/listen`. */
export { type Auth, createAuth } from './auth/auth.ts'
