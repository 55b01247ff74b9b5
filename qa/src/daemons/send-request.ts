/** Sends one HTTP request with exactly the given headers, including repeated and empty ones. */
import { request } from 'node:http'

export interface SentRequest {
  readonly path: string
  /** Default: POST. */
  readonly method?: string
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: string | Uint8Array
}

export interface Answered {
  readonly status: number
  readonly body: string
}

export const sendRequest = (url: string, { path, method = 'POST', headers = [], body = '' }: SentRequest): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const bytes = Buffer.from(body)
    const { host } = new URL(url)
    const always = [
      ['host', host],
      ['content-type', 'application/json'],
      ['content-length', String(bytes.length)],
      ['connection', 'close'],
    ]
    const outgoing = request(`${url}${path}`, { method, headers: [...always, ...headers].flat() }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks).toString() }))
      incoming.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.end(bytes)
  })
