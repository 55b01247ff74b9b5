/** Helpers of the test servers: they listen only on loopback and read whole requests. */
import { Server as HttpServer, type IncomingMessage } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { currentLink } from './link.ts'

/** A server that listens on loopback. */
export interface Listening {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string
  readonly port: number
  /** Breaks open connections and frees the port. The owner of any other server than an HTTP server breaks its connections. */
  close(): Promise<void>
}

/** Listens on 127.0.0.1; port 0 means any free port. Rejects if the port is in use. Inside `Link.through`, the port is one of the link. */
export async function listenOnLoopback(server: Server, port = 0): Promise<Listening> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const own = (server.address() as AddressInfo).port
  const reached = (await currentLink()?.portTo(own)) ?? own
  return {
    url: `http://127.0.0.1:${reached}`,
    port: reached,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        if (server instanceof HttpServer) server.closeAllConnections()
      }),
  }
}

/** The request's headers, including every value of a repeated header. */
export const headersIn = ({ headersDistinct }: IncomingMessage): Headers =>
  new Headers(Object.entries(headersDistinct).flatMap(([name, values = []]) => values.map((value): [string, string] => [name, value])))

/** Reads the whole body; throws if it has more than `bytesMax` bytes. */
export async function readWhole(incoming: IncomingMessage, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Error(`the request body has more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Parses the body as JSON; `undefined` if it is not JSON. */
export function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}
