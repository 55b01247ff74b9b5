/** Sends one HTTP request with exactly the given headers, including repeated and empty ones. */
import { request } from 'node:http'
import type { SentRequest } from '@sluice/testkit/vector'

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
