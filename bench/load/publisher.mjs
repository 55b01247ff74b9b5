// Publishes numbered events over a few connections. An event waits while every connection is busy.
import { openHttpConnection } from './http-connection.mjs'

/** `onError` is called if a connection fails or an event is refused. */
export async function openPublisher({ url, connections, onError }) {
  const { host, pathname } = new URL(url)
  const idle = await Promise.all(Array.from({ length: connections }, () => openHttpConnection(url)))
  const all = [...idle]
  const waiting = []

  function post(number) {
    const connection = idle.pop()
    if (!connection) return waiting.push(number)
    const body = JSON.stringify({ type: 'bench', content: { title: 'bench', message: 'm' }, bench_event: String(number) })
    const head = [`POST ${pathname} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json', `Content-Length: ${body.length}`]
    connection.send(Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`), (error, response) => {
      if (error || response.status > 299) return onError(error ?? new Error(`publishing was answered ${response.status}: ${response.body}`))
      idle.push(connection)
      if (waiting.length > 0) post(waiting.shift())
    })
  }

  return {
    post,
    close() {
      for (const connection of all) connection.close()
    },
  }
}
