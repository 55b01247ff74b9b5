/** The endpoints that stay open, for the document: what they speak is too much for a schema of answers. */
import type { EndpointDoc } from './endpoint.ts'

const upgraded = { 101: { description: 'The connection is a WebSocket from here on' } }

export const STREAM_DOCS: readonly EndpointDoc[] = [
  {
    method: 'GET',
    path: '/api/events',
    summary: 'Events as they happen (server-sent events)',
    auth: 'bearer',
    headers: { 'Last-Event-ID': 'The last event received: those missed since come first' },
    mediaType: 'text/event-stream',
    answers: { 200: { description: 'One event per frame, with its id' } },
  },
  { method: 'GET', path: '/ws/events', summary: 'Events as they happen (WebSocket)', auth: 'bearer', answers: upgraded },
  { method: 'GET', path: '/ws/chat', summary: 'A conversation with the agent (WebSocket)', auth: 'bearer', answers: upgraded },
]
