/**
 * Kills a daemon while a call waits for a person, and changes who may decide before the next start: the call runs once, and only after the
 * answer of a person who may decide it after that start.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CHATAPP_SECRET, chatappRequest, startChatappFake } from '@sluice/channel-chatapp/testing'
import { createRandom, testSeed } from '@sluice/testkit/random'
import { expect, onTestFinished, test } from 'vitest'
import { scratch, startDaemon, token } from '../daemons/bundle.ts'
import { CHATAPP_PERSON } from '../daemons/chatapp-requests.ts'
import { sectionToml } from '../daemons/section-toml.ts'
import { sendRequest } from '../daemons/send-request.ts'
import { MARK_FILES, startShellModel } from '../daemons/shell-model.ts'

const LOOPS = 8
const WAIT_MS_MAX = 30_000
/** A kill comes before the question is stored, before it is sent, or after. */
const KILL_MS_MAX = 400

/** A prompt begins with its title; a hint has the title inside. */
const isPrompt = ({ text }: { readonly text: string }): boolean => text.startsWith('shell wants to run')

interface Listed {
  readonly run_id: string
  readonly step_id: string
  readonly state: string
}

async function until<T>(find: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  for (const endMs = performance.now() + WAIT_MS_MAX; ; await sleep(20)) {
    const found = await find()
    if (found !== undefined && found !== false) return found
    if (performance.now() > endMs) throw new Error(`The condition did not hold within ${WAIT_MS_MAX / 1000} s: ${find}`)
  }
}

test('a question whose decider changes between two starts is decided by the new one, and its call runs once', async () => {
  const seed = testSeed()
  const random = createRandom(seed)
  const [model, platform] = await Promise.all([startShellModel(), startChatappFake()])
  const folder = scratch()
  onTestFinished(async () => {
    await Promise.all([model.close(), platform.close()])
    folder.dispose()
  })
  const section = {
    access_token: platform.accessToken,
    phone_number_id: platform.phoneNumberId,
    verify_token: 'vt-01',
    app_secret: CHATAPP_SECRET,
    allowed_numbers: [CHATAPP_PERSON],
    api_url: platform.url,
  }
  /** With `isOperator`, the person in the chat decides; otherwise only an operator elsewhere does. */
  const configure = (isOperator: boolean): void => {
    const channel = sectionToml('chatapp', section, isOperator ? [CHATAPP_PERSON] : [])
    const rest = '[limits]\nloop_turns = 0\n[limits.strangers]\nturns_per_hour = 0\npool = { turns_per_hour = 0 }\n'
    writeFileSync(join(folder.dir, 'config.toml'), `${model.toml}always_ask = ["shell"]\n${rest}${channel}`, { mode: 0o600 })
  }
  configure(true)
  let daemon = await startDaemon('full', folder.dir)
  onTestFinished(() => daemon.kill('SIGKILL'))
  const bearer = await token('full', folder.dir, 'owner')
  mkdirSync(join(folder.dir, 'workspace'), { recursive: true })
  writeFileSync(join(folder.dir, 'workspace', 'mark.mjs'), MARK_FILES['mark.mjs'])
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
  const say = async (id: string, text: string, quoted?: string): Promise<void> => {
    const message = { from: CHATAPP_PERSON, id, timestamp: String(Math.floor(Date.now() / 1000)), type: 'text', text: { body: text } }
    const value = {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: '15550001111', phone_number_id: platform.phoneNumberId },
      contacts: [{ profile: { name: 'Ada' }, wa_id: CHATAPP_PERSON }],
      messages: [{ ...message, ...(quoted !== undefined && { context: { from: '15550001111', id: quoted } }) }],
    }
    const body = { object: 'whatsapp_business_account', entry: [{ id: '1', changes: [{ field: 'messages', value }] }] }
    expect((await sendRequest(daemon.url, chatappRequest(Buffer.from(JSON.stringify(body))))).status).toBe(200)
  }
  const pending = async (): Promise<readonly Listed[]> => {
    const answer = await fetch(`${daemon.url}/api/approvals?state=pending`, { headers })
    return ((await answer.json()) as { readonly approvals: readonly Listed[] }).approvals
  }
  const runs = (): number => {
    try {
      return readFileSync(join(folder.dir, 'workspace', 'ran.txt'), 'utf8').split('\n').length - 1
    } catch {
      return 0
    }
  }
  for (let loop = 1; loop <= LOOPS; loop++) {
    const isOperatorFirst = loop % 2 === 1
    const before = platform.sent.length
    await say(`wamid.run-${loop}`, 'run')
    await sleep(random.within(0, KILL_MS_MAX))
    daemon.kill('SIGKILL')
    await daemon.exited
    configure(!isOperatorFirst)
    daemon = await startDaemon('full', folder.dir)
    const [question] = await until(async () => {
      const open = await pending()
      return open.length > 0 && open
    })
    const [prompt] = platform.sent.slice(before).filter(isPrompt)
    if (isOperatorFirst && prompt) {
      await say(`wamid.answer-${loop}`, 'approve', prompt.id)
      // The daemon may not know the prompt, which it sent in the instant of the kill: the answer is then a hint that names the question.
      await until(() => platform.sent.slice(before).some((message) => !isPrompt(message)))
    }
    expect(runs(), `seed ${seed}, loop ${loop}: the call ran before a person who may decide agreed`).toBe(loop - 1)
    // The question of before the change, or one that was asked since, waits for an operator.
    for (const { run_id, step_id } of await pending())
      await fetch(`${daemon.url}/api/approvals/${run_id}/${step_id}`, { method: 'POST', headers, body: JSON.stringify({ approved: true }) })
    expect(question?.state).toBe('pending')
    await until(() => runs() === loop)
    await until(async () => (await pending()).length === 0)
    await until(() => platform.sent.slice(before).filter(({ text }) => text.startsWith('It says:')).length === 1)
  }
  daemon.kill('SIGTERM')
  await daemon.exited
  expect(runs()).toBe(LOOPS)
})
