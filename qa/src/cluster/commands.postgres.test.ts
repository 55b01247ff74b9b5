/** Commands in rooms whose turns run on one node of a cluster, while any node has received the command. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startTelegramFake, TELEGRAM_TOKEN, type TelegramFake } from '@sluice/channel-telegram/testing'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startCluster, type TestCluster } from './test-cluster.ts'

const ADA = 1001
/** Each has its own shard, so that all nodes own the turns of some. */
const ROOMS = Array.from({ length: 8 }, (_, at) => -100_700 - at)
const TOPIC = 7

let telegram: TelegramFake
let model: ModelServer
let cluster: TestCluster
let asked = 0

beforeAll(async () => {
  telegram = await startTelegramFake({
    token: TELEGRAM_TOKEN,
    chats: ROOMS.map((id) => ({ id, type: 'supergroup' as const, threads: [TOPIC] })),
  })
  // No turn ends by itself.
  model = await startModelServer({
    apiKey: null,
    async answer() {
      asked++
      await sleep(60_000)
      return { text: 'late' }
    },
  })
  const toml = `[provider]
kind = "openai"
base_url = "${model.url}/v1"
model = "test"
[agent]
max_concurrent_turns = 32
[gateway]
require_pairing = false
[limits]
turns_running = 0
[channels_config.telegram]
bot_token = "${TELEGRAM_TOKEN}"
api_url = "${telegram.url}"
allowed_users = ["${ADA}"]
batch_ms = 0
steering = "queue"
`
  cluster = await startCluster({ nodes: 3, toml })
}, 180_000)
afterAll(async () => {
  await cluster?.close()
  await Promise.all([telegram?.close(), model?.close()])
})

const say = (chat: number, text: string, thread?: number): void =>
  void telegram.say({ from: { id: ADA, username: 'ada' }, chat, text, ...(thread !== undefined && { thread }) })

const answers = (chat: number): string[] => telegram.messages(chat).flatMap(({ text, from }) => (from.id === ADA ? [] : [text]))

/** Resolves to the number of messages that wait. */
async function waiting(): Promise<number> {
  const response = await fetch(`${cluster.front.url}/api/deliveries/inbox?state=pending&limit=100`)
  return ((await response.json()) as { readonly messages: readonly object[] }).messages.length
}

test.each([
  ['/stop', 'Stopped. Messages that waited and are not answered: 1.'],
  ['/new', 'Stopped. This is a new conversation. The earlier messages are kept, but no longer read.'],
])(
  '%s outside of threads reaches the turns in a thread of every room',
  async (command, answer) => {
    const before = asked
    for (const room of ROOMS) say(room, 'work', TOPIC)
    await expect.poll(() => asked - before, { timeout: 30_000 }).toBe(ROOMS.length)
    if (command === '/stop') {
      for (const room of ROOMS) say(room, 'more', TOPIC)
      await expect.poll(waiting, { timeout: 30_000 }).toBe(ROOMS.length)
    }
    for (const room of ROOMS) say(room, command)
    for (const room of ROOMS) await expect.poll(() => answers(room).at(-1), { timeout: 30_000 }).toBe(answer)
    expect(asked - before).toBe(ROOMS.length)
  },
  120_000,
)
