import { channelConformance } from '@sluice/testkit/channel'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { signalArrivals } from './testing/arrivals.ts'
import { SIGNAL_ACCOUNT } from './testing/fake.ts'
import { connect } from './testing/section.ts'

const AT_MS = Date.UTC(2026, 0, 1)
const UUID = '0d1e7c4a-9f5b-4c63-8a55-1f0f5d2f7a01'
const envelope = {
  source: '+15550003333',
  sourceNumber: '+15550003333',
  sourceUuid: UUID,
  sourceName: 'Ada',
  sourceDevice: 1,
  timestamp: AT_MS,
}
const EVENTS = [
  { envelope: { ...envelope, dataMessage: { timestamp: AT_MS, message: 'hello' } }, account: SIGNAL_ACCOUNT },
  { envelope: { ...envelope, receiptMessage: { isRead: true } }, account: SIGNAL_ACCOUNT },
]
/** The events, and then nothing until the request is aborted. */
const stream = (aborted: AbortSignal | null | undefined) =>
  new ReadableStream({
    start(controller) {
      aborted?.addEventListener('abort', () => controller.error(aborted.reason))
      for (const event of EVENTS) controller.enqueue(Buffer.from(`event:receive\ndata:${JSON.stringify(event)}\n\n`))
    },
  })

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { account: SIGNAL_ACCOUNT, allowed_from: ['+15550003333'] },
  allowKey: 'allowed_from',
  secrets: [],
  arrivals: signalArrivals,
  send: {
    to: { to: '+15550003333', replyTo: `${UUID}/${AT_MS}` },
    answer: () => Response.json({ jsonrpc: '2.0', result: { timestamp: 1_767_225_600_001, results: [{ type: 'SUCCESS' }] }, id: '1' }),
    id: `${SIGNAL_ACCOUNT}/1767225600001`,
  },
  listen: {
    host: () => ({ fetch: async (_, init) => new Response(stream(init?.signal), { headers: { 'content-type': 'text/event-stream' } }) }),
    expect: [
      {
        id: `${UUID}/${AT_MS}`,
        account: SIGNAL_ACCOUNT,
        sender: '+15550003333',
        name: 'Ada',
        to: { to: '+15550003333', replyTo: `${UUID}/${AT_MS}` },
        text: 'hello',
        addressed: 'direct',
        sentAtMs: AT_MS,
      },
    ],
    canFallSilent: true,
    async platform(nowMs) {
      const { fake, section } = await connect(nowMs)
      return {
        fake,
        config: section,
        say: (text) => void fake.say({ text }),
        fallSilent: () => fake.mute(),
        refuse: () => fake.forget(),
      }
    },
  },
})
