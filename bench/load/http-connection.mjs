// A keep-alive HTTP connection over a raw socket, which needs so little CPU that the load program does not limit a measurement.
import { connect } from 'node:net'

const HEAD_END = Buffer.from('\r\n\r\n')
const CHUNKS_END = Buffer.from('0\r\n\r\n')

/** Returns the response at the start of the bytes; null until it is complete. */
function parseResponse(bytes) {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd < 0) return null
  const head = bytes.latin1Slice(0, headEnd + 2)
  const bodyStart = headEnd + HEAD_END.length
  const [, length] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? []
  let bodyEnd = bodyStart + Number(length ?? 0)
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
    const last = bytes.indexOf(CHUNKS_END, bodyStart)
    if (last < 0) return null
    bodyEnd = last + CHUNKS_END.length
  }
  if (bytes.length < bodyEnd) return null
  return { status: Number(head.slice(9, 12)), body: bytes.subarray(bodyStart, bodyEnd), closes: /\r\nconnection: *close/i.test(head) }
}

/** Resolves to a connection whose `send` takes one request at a time and calls back with an error or the response. */
export function openHttpConnection(url) {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    let answer = null
    const settle = (error, response) => {
      const callback = answer
      answer = null
      bytes = Buffer.alloc(0)
      callback?.(error, response)
    }
    const socket = connect({ host: hostname, port: Number(port), noDelay: true }, () =>
      resolve({
        send(request, callback) {
          if (socket.destroyed) return callback(new Error('the server closed an idle connection'))
          answer = callback
          socket.write(request)
        },
        close: () => socket.destroy(),
      }),
    )
    socket.on('data', (chunk) => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      const response = parseResponse(bytes)
      if (!response) return
      if (response.closes) socket.end()
      settle(null, response)
    })
    socket.on('error', reject)
    socket.on('close', () => settle(new Error('the server closed the connection without an answer')))
  })
}
