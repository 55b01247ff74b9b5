/** Bodies of messages in the format of a channel's platform. */
import type { Webhook } from '@sluice/sdk'
import type { Random } from '../random.ts'

/** The body of a message, its id and the time it was sent. */
export interface ValidBody {
  readonly id: string
  readonly atMs: number
  readonly body: Uint8Array
}

const COUNT = 64
const START_MS = Date.UTC(2026, 0, 1)
const TEXTS = ['hello', 'café 😀', 'a/b "c" \\ d', '{"a":1}', 'ö'.repeat(50), 'two\nlines', '﷽', '.1767225600.{}', 'x'.repeat(2000)]

/** Returns bodies at different times, half of them with the escapes that some platforms write. */
export function validBodies(webhook: Webhook, random: Random): ValidBody[] {
  return Array.from({ length: COUNT }, (_, index) => {
    const id = `message-${index}-${Buffer.from(random.bytes(6)).toString('hex')}`
    const atMs = START_MS + random.below(1_000_000_000)
    const { body } = webhook.sample({ sender: '+15550002222', text: `${random.pick(TEXTS)} ${index}`, id, atMs })
    return { id, atMs, body: Buffer.from(random.chance(0.5) ? escaped(body) : body) }
  })
}

const escaped = (json: string): string =>
  json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
