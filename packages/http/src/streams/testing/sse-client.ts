/** A subscriber of `GET /api/events`. */
import { get, type IncomingMessage } from 'node:http'
import { Inbox } from './inbox.ts'
import { TOKENS } from './stream-server.ts'

export interface SseClient {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The blocks between empty lines. */
  readonly blocks: Inbox<string>
  readonly closed: Promise<void>
  /** To pause and resume the reading. */
  readonly response: IncomingMessage
}

export function subscribe(url: string, { path = '/api/events', headers = {} } = {}): Promise<SseClient> {
  const blocks = new Inbox<string>()
  return new Promise((resolve, reject) => {
    const request = get(`${url}${path}`, { headers: { authorization: `Bearer ${TOKENS.d1}`, ...headers }, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('error', () => {})
      response.on('data', (chunk: string) => {
        const parts = (text + chunk).split('\n\n')
        text = parts.pop() ?? ''
        for (const part of parts) blocks.push(part)
      })
      const closed = new Promise<void>((ended) => response.once('close', ended))
      resolve({ status: response.statusCode ?? 0, headers: response.headers, blocks, closed, response })
    })
    request.once('error', reject)
  })
}
