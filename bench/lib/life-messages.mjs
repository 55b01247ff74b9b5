// Messages of 1 KiB for measurements of the store alone: text that does not compress, a thousand conversations.
import { randomBytes, randomUUID } from 'node:crypto'

const KEYS = 1000
const ACCOUNT = '200000000000002'
const POOL = Array.from({ length: 64 }, () => randomBytes(768).toString('base64'))

export const textOf = (number, chars) => POOL[number % POOL.length].slice(0, chars)

/** Returns the message with this number, as the channel parses it, and its request. */
export function messageOf(number) {
  const sender = `+1555${String(number % KEYS).padStart(7, '0')}`
  const id = `wamid.${randomUUID()}`
  const text = textOf(number, 630)
  const raw = Buffer.from(
    JSON.stringify({ id, sender, text })
      .padEnd(1024, textOf(number + 1, 1000))
      .slice(0, 1024),
  )
  const message = { id, account: ACCOUNT, sender, to: { to: sender, replyTo: id }, text, sentAtMs: 1_767_225_600_000 }
  const session = `channel:chatapp/${ACCOUNT}/${encodeURIComponent(sender)}/${encodeURIComponent(sender)}`
  return { id, sender, session, message, raw, answer: textOf(number + 2, 300), turn: randomUUID() }
}

export const CHANNEL = { channel: 'chatapp', account: ACCOUNT, verdict: 'x-hub-signature-256' }

/** Runs `count` units of work, `inFlight` at a time. Two units of one conversation never run at once. */
export async function inFlight(count, lanes, work) {
  let next = 0
  const lane = async () => {
    for (let number = next++; number < count; number = next++) await work(number)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}
