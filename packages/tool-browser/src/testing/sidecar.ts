/** A fake sidecar that records requests and sends a configurable answer. */
import { createServer } from 'node:http'
import { jsonIn, type Listening, listenOnLoopback, readWhole } from '@sluice/testkit/loopback-server'

const BODY_BYTES_MAX = 1_048_576

interface Answer {
  readonly status?: number
  readonly body?: object
  /** Sent instead of `body`. */
  readonly text?: string
  readonly location?: string
}

export interface FakeSidecar extends Listening {
  readonly requests: readonly object[]
  /** `never`: requests are left without an answer. */
  answer: Answer | 'never'
}

export async function startSidecar(): Promise<FakeSidecar> {
  const requests: object[] = []
  const server = createServer(async (request, response) => {
    const { method, url: path, headers } = request
    if (method === 'POST')
      requests.push({ method, path, authorization: headers.authorization, body: jsonIn(await readWhole(request, BODY_BYTES_MAX)) })
    const { answer } = sidecar
    if (answer === 'never') return
    response.writeHead(answer.status ?? 200, answer.location === undefined ? {} : { location: answer.location })
    response.end(answer.text ?? JSON.stringify(answer.body))
  })
  const sidecar: FakeSidecar = { ...(await listenOnLoopback(server)), requests, answer: { body: {} } }
  return sidecar
}
