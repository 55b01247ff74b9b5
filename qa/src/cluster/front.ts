/** An HTTP server in front of the nodes of a cluster, as a load balancer is: each request goes to any node that listens. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { listenOnLoopback } from '@sluice/testkit/loopback-server'

export interface Front {
  readonly url: string
  /** Added to each request that does not have them. */
  headers: Readonly<Record<string, string>>
  close(): Promise<void>
}

/** `pick` returns the addresses of nodes in the order in which they are tried. A request that no node takes is not answered. */
export async function startFront(pick: () => readonly string[]): Promise<Front> {
  const forward = (incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse, urls: readonly string[]): void => {
    const [url, ...others] = urls
    if (url === undefined) return void outgoing.destroy()
    const { method = 'GET', headers } = incoming
    const onward = request(url + (incoming.url ?? '/'), {
      method,
      headers: { ...front.headers, ...headers, host: new URL(url).host },
      agent: false,
    })
    let isTaken = false
    onward.on('socket', (socket) => socket.once('connect', () => (isTaken = true)))
    onward.on('response', (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(outgoing)
      response.on('error', () => outgoing.destroy())
    })
    // Only a request that no node can have seen is sent to another one.
    onward.on('error', () => (isTaken ? outgoing.destroy() : forward(incoming, body, outgoing, others)))
    outgoing.on('close', () => onward.destroy())
    onward.end(body)
  }
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => forward(incoming, Buffer.concat(chunks), outgoing, pick()))
    incoming.on('error', () => outgoing.destroy())
  })
  const { url, close } = await listenOnLoopback(server)
  const front: Front = { url, headers: {}, close }
  return front
}
