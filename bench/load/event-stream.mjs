// Subscribes to the events of a server by SSE or WebSocket, over a raw socket, so that the client needs less CPU than the server.
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'

const MARK = /"bench_event":"(\d+)"/g
const TAIL_CHARS = 64
const HEAD_BYTES_MAX = 16 * 1024
const NOTHING = Buffer.alloc(0)

/** Returns a reader for text that arrives in chunks; it calls `onEvent` with the number of each marked event. */
function createMarkReader(onEvent) {
  let tail = ''
  return (piece) => {
    const text = tail + piece
    let end = 0
    for (const match of text.matchAll(MARK)) {
      onEvent(Number(match[1]))
      end = match.index + match[0].length
    }
    tail = text.slice(Math.max(end, text.length - TAIL_CHARS))
  }
}

/** Reads the complete frames, answers pings, and returns the remaining bytes. */
function readFrames(bytes, socket, onText) {
  let rest = bytes
  while (rest.length >= 2) {
    const kind = rest[0] & 15
    let [length, start] = [rest[1] & 127, 2]
    if (length === 126) {
      if (rest.length < 4) break
      ;[length, start] = [rest.readUInt16BE(2), 4]
    } else if (length === 127) throw new Error('a frame of 64 KiB or more')
    if (rest.length < start + length) break
    const payload = rest.subarray(start, start + length)
    if (kind === 1) onText(payload.latin1Slice())
    else if (kind === 8) throw new Error(`the server closed with ${payload.length >= 2 ? payload.readUInt16BE(0) : 'no reason'}`)
    // A mask of zeros does not change the payload.
    else if (kind === 9) socket.write(Buffer.concat([Buffer.from([0x8a, 0x80 | length, 0, 0, 0, 0]), payload]))
    rest = rest.subarray(start + length)
  }
  return rest
}

function requestHead({ kind, url, token }) {
  const { host, pathname } = new URL(url)
  const upgrade = [
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Version: 13',
  ]
  const own = kind === 'ws' ? upgrade : ['Accept: text/event-stream']
  return [`GET ${pathname} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${token}`, ...own, '', ''].join('\r\n')
}

/**
 * Resolves to an unsubscribe function once the server has accepted. `onEnd` is called if the connection ends in any other way. With
 * `onBytes`, events are counted by their bytes and not read.
 */
export function subscribe({ kind, url, token, onEvent, onEnd, onBytes }) {
  const { hostname, port } = new URL(url)
  const readText = onBytes ? () => {} : createMarkReader(onEvent)
  return new Promise((resolve, reject) => {
    let rest = NOTHING
    let accepted = false
    const socket = connect({ host: hostname, port: Number(port), noDelay: true }, () => socket.write(requestHead({ kind, url, token })))
    const fail = (error) => {
      socket.destroy()
      if (accepted) onEnd(error)
      else reject(error)
    }
    const readBody = () => {
      onBytes?.(rest.length)
      if (kind === 'sse' && onBytes) rest = NOTHING
      else if (kind === 'ws') rest = readFrames(rest, socket, readText)
      else {
        readText(rest.latin1Slice())
        rest = NOTHING
      }
    }
    const readHead = () => {
      const end = rest.indexOf('\r\n\r\n')
      if (end < 0 && rest.length < HEAD_BYTES_MAX) return
      const status = Number(rest.latin1Slice(9, 12))
      if (status !== (kind === 'ws' ? 101 : 200)) throw new Error(`the subscription was answered ${rest.latin1Slice(9, 200)}`)
      accepted = true
      rest = rest.subarray(end + 4)
      resolve(() => socket.removeListener('close', onClose).destroy())
      readBody()
    }
    const onClose = () => fail(new Error('the server ended a subscription'))
    socket.on('close', onClose)
    socket.on('error', fail)
    socket.on('data', (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      try {
        if (accepted) readBody()
        else readHead()
      } catch (error) {
        fail(error)
      }
    })
  })
}
