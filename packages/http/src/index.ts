/** The HTTP side of Sluice: the server, authentication, routes, event streams and OpenAPI. */
export { createAuth } from './auth.ts'
export { chatFrameSchema, clientFrameSchema } from './streams/chat-frames.ts'
export { streamFrameSchema } from './streams/frames.ts'
