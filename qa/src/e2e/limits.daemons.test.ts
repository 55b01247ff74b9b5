/** The limits of clients in built daemons: every entrance, through a crash and a reload, and a loop between two bots. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  startTextrelayFake,
  TEXTRELAY_SECRET,
  TEXTRELAY_TOKEN,
  type TextrelayFake,
  textrelaySignatures,
} from '@sluice/channel-textrelay/testing'
import { afterEach, expect, test } from 'vitest'
import { eventually, post, type RunningDaemon, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

const NUMBER = '+15550001111'
const PERSON = '+15550003333'
const CHAT = 'chat-1'

interface Bot {
  readonly dir: string
  dispose(): void
  readonly textrelay: TextrelayFake
  daemon: RunningDaemon
}

const bots: Bot[] = []

async function startBot(limits: string): Promise<Bot> {
  const textrelay = await startTextrelayFake({ chats: { [CHAT]: PERSON }, phones: [NUMBER] })
  const { dir, dispose } = scratch(`
[channels_config.textrelay]
batch_ms = 0
steering = "queue"
api_token = "${TEXTRELAY_TOKEN}"
signing_secret = "${TEXTRELAY_SECRET}"
from_phone = "${NUMBER}"
allowed_senders = ["${PERSON}"]
api_url = "${textrelay.apiUrl}"
${limits}`)
  const bot = { dir, dispose, textrelay, daemon: await startDaemon('full', dir) }
  bots.push(bot)
  return bot
}

afterEach(async () => {
  for (const { daemon, textrelay, dispose } of bots.splice(0)) {
    daemon.kill('SIGKILL')
    await daemon.exited
    await textrelay.close()
    dispose()
  }
})

/** The requests are signed: a sender who proves no identity has the limits of strangers. */
const say = ({ daemon }: Bot, text: string, id = text) => {
  const body = JSON.stringify({
    event_type: 'message.received',
    event_id: id,
    data: {
      sender_handle: { handle: PERSON },
      chat: { id: CHAT, owner_handle: { handle: NUMBER } },
      parts: [{ type: 'text', value: text }],
    },
  })
  return post(`${daemon.url}/textrelay`, body, textrelaySignatures(body, { secret: TEXTRELAY_SECRET, id, atMs: Date.now() }))
}

const cli = async ({ dir }: Bot, ...args: string[]): Promise<unknown> =>
  JSON.parse((await run('full', [...args, '--json', '--data-dir', dir])).stdout)
const states = async (bot: Bot): Promise<readonly string[]> =>
  ((await cli(bot, 'inbox', 'list')) as { state: string }[]).map(({ state }) => state).toReversed()

async function crash(bot: Bot): Promise<void> {
  bot.daemon.kill('SIGKILL')
  await bot.daemon.exited
  bot.daemon = await startDaemon('full', bot.dir)
}

function changeConfig({ dir }: Bot, from: string, to: string): void {
  const file = join(dir, 'config.toml')
  writeFileSync(file, readFileSync(file, 'utf8').replace(from, to))
}

/** The entrances for devices. Each sends one message and resolves to whether it was refused as `rate_limited`. */
const ENTRANCES: Readonly<Record<string, (url: string, bearer: string) => Promise<boolean>>> = {
  async 'POST /webhook'(url, bearer) {
    const { status, headers, body } = await post(`${url}/webhook`, { message: 'hi' }, { authorization: `Bearer ${bearer}` })
    if (status === 429) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    return status === 429 && body.code === 'rate_limited'
  },
  async 'POST /webhook, answered later'(url, bearer) {
    const headers = { authorization: `Bearer ${bearer}`, prefer: 'respond-async' }
    const { status } = await post(`${url}/webhook`, { message: 'hi' }, headers)
    expect([202, 429]).toContain(status)
    return status === 429
  },
  async 'POST /api/turns'(url, bearer) {
    const response = await fetch(`${url}/api/turns`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'hi' }),
    })
    const last = JSON.parse((await response.text()).trim().split('\n').at(-1) ?? '')
    return last.type === 'error' && last.error_code === 'rate_limited'
  },
  '/ws/chat': (url, bearer) =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/ws/chat`, ['sluice.v1', `bearer.${bearer}`])
      socket.addEventListener('error', () => reject(new Error('the chat could not be opened')))
      socket.addEventListener('message', ({ data }) => {
        const frame = JSON.parse(String(data))
        if (frame.type === 'session_start') socket.send(JSON.stringify({ type: 'message', content: 'hi' }))
        if (frame.type !== 'done' && frame.type !== 'error') return
        socket.close()
        resolve(frame.type === 'error' && frame.error_code === 'rate_limited')
      })
    }),
}

test('a device has its limit at every entrance, also after a crash, and a reload changes it at once', async () => {
  const bot = await startBot('[limits]\nturns_per_hour = 2\n')
  const devices = Object.fromEntries(
    await Promise.all(Object.keys(ENTRANCES).map(async (name) => [name, await token('full', bot.dir, name, 'client')] as const)),
  )
  const attempt = async (): Promise<Record<string, boolean>> => {
    const refused: Record<string, boolean> = {}
    for (const [name, send] of Object.entries(ENTRANCES)) refused[name] = await send(bot.daemon.url, devices[name] ?? '')
    return refused
  }
  const all = (isRefused: boolean) => Object.fromEntries(Object.keys(ENTRANCES).map((name) => [name, isRefused]))
  expect(await attempt()).toEqual(all(false))
  await crash(bot)
  expect(await attempt()).toEqual(all(false))
  expect(await attempt()).toEqual(all(true))
  await crash(bot)
  expect(await attempt()).toEqual(all(true))
  expect(await cli(bot, 'limits', 'list')).toHaveLength(4)
  changeConfig(bot, 'turns_per_hour = 2', 'turns_per_hour = 3')
  const others = Object.entries(ENTRANCES).slice(1)
  await eventually(
    () => ENTRANCES['POST /webhook']?.(bot.daemon.url, devices['POST /webhook'] ?? '') ?? Promise.resolve(true),
    (isRefused) => !isRefused,
  )
  for (const [name, send] of others) expect([name, await send(bot.daemon.url, devices[name] ?? '')]).toEqual([name, false])
  expect(await attempt()).toEqual(all(true))
}, 60_000)

test('a sender has its limit over a channel, with one notice, also after a crash', async () => {
  const bot = await startBot('[channels_config.textrelay.limits]\nturns_per_hour = 2\n')
  for (const text of ['one', 'two', 'three']) expect((await say(bot, text)).status).toBe(200)
  await eventually(
    async () => bot.textrelay.sent.length,
    (count) => count === 3,
  )
  await crash(bot)
  expect((await say(bot, 'four')).status).toBe(200)
  await eventually(
    () => states(bot),
    (found) => found.join() === 'done,done,limited,limited',
  )
  expect(bot.textrelay.sent.filter(({ text }) => text.startsWith('You have reached the limit for messages: 2 an hour'))).toHaveLength(1)
  const number = ((await cli(bot, 'inbox', 'list')) as { number: number }[])[0]?.number
  await run('full', ['inbox', 'replay', String(number), '--data-dir', bot.dir])
  await eventually(
    () => states(bot),
    (found) => found.join() === 'done,done,limited,done',
  )
}, 60_000)

test('two daemons that answer each other stop', async () => {
  const [ada, bob] = await Promise.all([startBot('[limits]\nloop_turns = 5\n'), startBot('[limits]\nloop_turns = 5\n')])
  const isOver = async (): Promise<boolean> => {
    const paused = await Promise.all([ada, bob].map((bot) => cli(bot, 'limits', 'list')))
    return paused.flat().length > 0
  }
  await say(ada, 'hello')
  let relayed = 0
  for (let [from, to] = [ada, bob]; relayed < 20; [from, to] = [to, from]) {
    const index = Math.floor(relayed / 2)
    await eventually(
      async () => from.textrelay.sent.length > index || (await isOver()),
      (found) => found,
    )
    const text = from.textrelay.sent[index]?.text
    if (text === undefined) break
    await say(to, text.slice(-200), `relayed ${relayed++}`)
  }
  expect(relayed).toBeLessThan(13)
  expect([...(await states(ada)), ...(await states(bob))].filter((state) => state === 'limited')).toHaveLength(1)
}, 60_000)
