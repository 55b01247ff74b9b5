/** People write several messages before and during their turns while the daemon is killed again and again: each is read once, in order. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startTelegramFake, TELEGRAM_TOKEN, type TelegramFake } from '@sluice/channel-telegram/testing'
import { systemClock } from '@sluice/kit'
import { openStore } from '@sluice/store'
import { testHost } from '@sluice/testkit/host'
import { type ModelRequest, type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { expect, test } from 'vitest'
import { scratch } from '../daemons/bundle.ts'
import { type SourceDaemon, startSourceDaemon } from '../daemons/source-daemon.ts'

/** The number of times that the daemon is killed. */
const KILLS = Number(process.env.SLUICE_KILLS ?? (process.env.SLUICE_NIGHTLY === '1' ? 300 : 8))
const KILL_MS_MAX = 60_000
const PEOPLE = [1001, 1002] as const
const WAIT_MS_MAX = 60_000
const POLL_MS = 10
const MARK = /mark-\d+-\d+/g

const marksIn = (value: unknown): string[] => JSON.stringify(value ?? '').match(MARK) ?? []

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + WAIT_MS_MAX
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`The condition did not hold within ${WAIT_MS_MAX / 1000} s: ${isSo}`)
    await sleep(POLL_MS)
  }
}

class Chats {
  readonly telegram: TelegramFake
  readonly written = new Map<number, string[]>(PEOPLE.map((person) => [person, []]))
  #count = 0

  constructor(telegram: TelegramFake) {
    this.telegram = telegram
  }

  say(person: (typeof PEOPLE)[number]): void {
    const mark = `mark-${person}-${++this.#count}`
    this.written.get(person)?.push(mark)
    this.telegram.say({ from: { id: person, username: `p${person}` }, text: mark })
  }
}

/** Calls a tool first, and answers once it has the result. People write more before each answer of the model. */
function createModel(chats: () => Chats | undefined): Promise<ModelServer> {
  let asked = 0
  return startModelServer({
    apiKey: null,
    async answer({ body }: ModelRequest) {
      const { messages } = body as { readonly messages: readonly { readonly role: string }[] }
      const person = PEOPLE[asked++ % PEOPLE.length] ?? PEOPLE[0]
      if (asked % 3 === 0) chats()?.say(person)
      return messages.at(-1)?.role === 'tool' || asked % 4 === 0
        ? { text: 'answered' }
        : { toolCalls: [{ id: `call-${asked}`, name: 'glob', input: { pattern: '*.none' } }] }
    },
  })
}

test(
  `${KILLS} kills lose no message, repeat none and keep their order`,
  async ({ onTestFinished }) => {
    let chats: Chats | undefined
    const telegram = await startTelegramFake({ token: TELEGRAM_TOKEN, chats: [] })
    const model = await createModel(() => chats)
    const folder = scratch(`[agent]
max_iterations = 50
[provider]
kind = "openai"
base_url = "${model.url}/v1"
model = "test"
[gateway]
require_pairing = false
[limits]
loop_turns = 0
[delivery]
max_attempts = 100
[channels_config.telegram]
bot_token = "${TELEGRAM_TOKEN}"
api_url = "${telegram.url}"
allowed_users = ["1001", "1002"]
batch_ms = 60
`)
    let daemon: SourceDaemon | undefined
    onTestFinished(async () => {
      await daemon?.kill()
      await Promise.all([telegram.close(), model.close()])
      folder.dispose()
    })
    const people = new Chats(telegram)
    chats = people
    for (let kill = 0; kill <= KILLS; kill++) {
      daemon = await startSourceDaemon(folder.dir)
      const [asked, sent] = [model.requests.length, telegram.sent().length]
      for (let message = 0; message < 2 + (kill % 3); message++) people.say(PEOPLE[(kill + message) % 2] ?? PEOPLE[0])
      if (kill === KILLS) break
      // The instant of the kill: after the model was asked so often, or after an answer was sent.
      const steps = kill % 5
      await until(() => (steps < 4 ? model.requests.length >= asked + steps : telegram.sent().length > sent))
      await daemon.kill()
    }
    chats = undefined
    await until(async () => {
      const status = (await (await fetch(`${daemon?.url}/api/status`)).json()) as Readonly<Record<string, number>>
      const isIdle = ['turns_running', 'turns_queued', 'messages_pending', 'replies_pending'].every((name) => status[name] === 0)
      return isIdle && telegram.waiting.length === 0
    })
    await daemon?.kill()
    daemon = undefined
    const store = openStore({ file: join(folder.dir, 'sluice.db'), clock: systemClock, log: testHost().log })
    try {
      const sessions = await store.sessions.list({ limit: 10 })
      const read = new Map<number, string[]>()
      for (const { id } of sessions) {
        const turns = await store.sessions.messagesByTurn(id, { after: 0, limit: 100_000 })
        const marks = turns.flatMap(({ messages }) => messages.filter(({ role }) => role === 'user').flatMap(marksIn))
        read.set(Number(id.split('/').at(-1)), marks)
      }
      const rows = await store.inbox.list({ limit: 100_000 })
      expect(rows.filter(({ state }) => state !== 'done')).toEqual([])
      expect(rows.some(({ turnId, attempts }) => turnId !== null && attempts === 0)).toBe(true)
      for (const person of PEOPLE) expect(read.get(person)).toEqual(people.written.get(person))
    } finally {
      await store.close()
    }
  },
  (KILLS + 5) * KILL_MS_MAX,
)
