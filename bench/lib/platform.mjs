// A fake platform of chatapp: accepts replies after a delay, and counts the replies to each message of `chatappRequest`.
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const KEEP_ALIVE_MS = 60_000
/** The number of a message, from its id `wamid.<number>.<random>`. */
const NUMBER = /^wamid\.(\d+)\./

/** `answerMs` is the time of each answer. Times are values of `performance.now()`. */
export async function startPlatform({ answerMs = 0 } = {}) {
  /** The number of replies to each message, by its number. */
  let counts = new Uint8Array(1 << 16)
  const lastOf = new Map()
  const seen = { answered: 0, doubled: 0, outOfOrder: 0, atOnce: 0, atOnceMax: 0 }
  const arrivals = []

  function count(to, messageId) {
    const number = Number(NUMBER.exec(messageId)?.[1])
    if (number >= counts.length) {
      const grown = new Uint8Array(Math.max(counts.length * 2, number + 1))
      grown.set(counts)
      counts = grown
    }
    const before = counts[number]++
    if (before === 0) seen.answered += 1
    if (before === 1) seen.doubled += 1
    if (number < (lastOf.get(to) ?? -1)) seen.outOfOrder += 1
    lastOf.set(to, number)
    arrivals.push(performance.now())
  }

  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { type, to, context } = JSON.parse(body)
    seen.atOnceMax = Math.max(seen.atOnceMax, ++seen.atOnce)
    if (answerMs > 0) await sleep(answerMs)
    seen.atOnce -= 1
    if (type === 'text') count(to, context.message_id)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ messages: [{ id: `wamid.${arrivals.length}` }] }))
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  await new Promise((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 1024 }, resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    seen,
    /** Replies a second from the `skip`th reply to the last one. */
    perSec: (skip) => ((arrivals.length - 1 - skip) * 1000) / (arrivals.at(-1) - arrivals[skip]),
    close: () => server.close().closeAllConnections(),
  }
}
