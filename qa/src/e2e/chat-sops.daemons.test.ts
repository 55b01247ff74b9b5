/** Procedures that a chat message starts, and the people who approve their steps. See docs/contract.md#procedures. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ChatappFake, startChatappFake } from '@sluice/channel-chatapp/testing'
import type { SopRun } from '@sluice/sdk'
import type { Shown } from '@sluice/testkit/chat'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ChatDaemon, chatDaemons } from '../daemons/chat-daemon.ts'
import { CHATAPP_PERSON, chatappRequest } from '../daemons/chatapp-requests.ts'
import { sendRequest } from '../daemons/send-request.ts'
import { MARK_FILES } from '../daemons/shell-model.ts'

const SOP = '[sop]\nname = "ship"\ndescription = "Ships a release"\nversion = "1.0.0"\npriority = "normal"\n'
const TRIGGER = '[[triggers]]\ntype = "webhook"\npath = "/chatapp"\nrole = "listed"\n'
const WRITE = '- tools: file_write\n   - input: {"path": "shipped.txt", "content": "$event.text"}'

const DETERMINISTIC = {
  '../sops/ship/SOP.toml': `${SOP}execution_mode = "deterministic"\n${TRIGGER}`,
  '../sops/ship/SOP.md': `# Ship\n\n## Steps\n\n1. **Agree** - The prompt shows the release.\n   - kind: checkpoint\n\n2. **Ship** - Makes it live.\n   ${WRITE}\n`,
}
const SUPERVISED = {
  '../sops/ship/SOP.toml': `${SOP}execution_mode = "supervised"\n${TRIGGER}`,
  '../sops/ship/SOP.md': '# Ship\n\n## Steps\n\n1. **Ship** - Makes it live.\n   - tools: file_write\n',
}
const SHELL = {
  ...MARK_FILES,
  '../sops/ship/SOP.toml': `${SOP}execution_mode = "deterministic"\n${TRIGGER}`,
  '../sops/ship/SOP.md':
    '# Ship\n\n## Steps\n\n1. **Ship** - Makes it live.\n   - tools: shell\n   - input: {"command": "node mark.mjs", "timeout_secs": 30}\n',
}

/** The steps run as an operator: only an operator in the chat is asked about their tool calls there. */
const OPERATOR = `operators = ["+${CHATAPP_PERSON}"]`

const start = chatDaemons()
let chatapp: ChatappFake
beforeEach(async () => {
  chatapp = await startChatappFake()
})
afterEach(() => chatapp.close())

/** A daemon with a procedure that a message of chatapp has started, and its prompts there and in the community. */
async function asked(files: Readonly<Record<string, string>> = DETERMINISTIC, more = '') {
  const daemon = await start({
    chats: ['discord'],
    files,
    toml: `[provider]
kind = "offline"
[approvals]
channels = ["community"]
[sop]
take_over = true
approval_timeout_secs = 120
[channels_config.chatapp]
access_token = "${chatapp.accessToken}"
phone_number_id = "${chatapp.phoneNumberId}"
verify_token = "vt-01"
app_secret = "chatapp-app-secret-01"
allowed_numbers = ["+${CHATAPP_PERSON}", "+15550003333"]
api_url = "${chatapp.url}"
${more}
`,
  })
  const post = (message: Parameters<typeof chatappRequest>[0]) => sendRequest(daemon.daemon.url, chatappRequest(message))
  expect(await post({ id: 'wamid.1', text: 'v1.2' })).toMatchObject({ status: 200 })
  const [question] = await daemon.until(() => (chatapp.sent.length > 0 ? chatapp.sent : undefined))
  const prompt = await daemon.until(() => daemon.chat('discord').sent()[0])
  await daemon.sent()
  return { daemon, post, question, prompt }
}

async function runOf(daemon: ChatDaemon): Promise<SopRun> {
  const [run, ...others] = (await daemon.daemon.runtime.sops()?.runs({ limit: 10 })) ?? []
  if (!run || others.length > 0) throw new Error(`The store has ${others.length + (run ? 1 : 0)} runs instead of one.`)
  return run
}

const ended = (daemon: ChatDaemon) =>
  daemon.until(async () => {
    const run = await runOf(daemon)
    return run.endedAtMs !== null && run
  })
const shipped = ({ dataDir }: ChatDaemon): string | undefined => {
  const file = join(dataDir, 'workspace', 'shipped.txt')
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}
const without = (prompt: Shown) => ({ id: prompt.id, buttons: [] })

describe('a procedure whose trigger is the path of a chat', () => {
  test('takes the message instead of the agent, and prompts sender and targets', async () => {
    const { daemon, question, prompt, post } = await asked()
    expect(question).toMatchObject({ to: CHATAPP_PERSON, text: expect.stringMatching(/^ship: step 1 of 2: Agree\n/) })
    expect(prompt).toMatchObject({ place: daemon.chat('discord').places.notify, text: expect.stringContaining('v1.2') })
    expect(await post({ id: 'wamid.1', text: 'v1.2' })).toMatchObject({ status: 200 })
    await daemon.idle()
    expect(await runOf(daemon)).toMatchObject({ status: 'paused_checkpoint' })
    expect(chatapp.sent).toHaveLength(1)
  })

  test('continues after the sender approves, and the other chat shows so', async () => {
    const { daemon, post, prompt } = await asked()
    expect(await post({ id: 'wamid.2', text: 'approve', from: '15550003333' })).toMatchObject({ status: 200 })
    expect(shipped(daemon)).toBeUndefined()
    expect(await post({ id: 'wamid.3', text: 'Approve' })).toMatchObject({ status: 200 })
    await daemon.until(() => shipped(daemon) !== undefined)
    expect(shipped(daemon)).toBe('v1.2')
    await daemon.idle()
    const verdict = `Approved by chatapp:+${CHATAPP_PERSON}`
    expect(chatapp.sent.filter(({ text }) => text === verdict)).toHaveLength(1)
    expect(daemon.chat('discord').sent()).toContainEqual(expect.objectContaining(without(prompt)))
    expect(daemon.chat('discord').sent()).toContainEqual(expect.objectContaining({ place: prompt.id, text: verdict }))
  })

  test('continues after a button in the other chat', async () => {
    const { daemon, prompt } = await asked()
    const { people } = daemon.chat('discord')
    daemon.chat('discord').press({ message: prompt.id, value: prompt.buttons[0] ?? '', from: people.eve })
    daemon.chat('discord').press({ message: prompt.id, value: prompt.buttons[0] ?? '', from: people.bob })
    expect(await ended(daemon)).toMatchObject({ status: 'completed' })
    expect(shipped(daemon)).toBe('v1.2')
    await daemon.until(() => chatapp.sent.some(({ text }) => text === `Approved by discord:${people.bob}`))
  })

  test('is cancelled by a rejection, with its feedback as the reason', async () => {
    const { daemon, post } = await asked()
    await post({ id: 'wamid.2', text: 'reject the tests are red' })
    expect(await ended(daemon)).toMatchObject({ status: 'cancelled', reason: expect.stringContaining('the tests are red') })
    await daemon.idle()
    expect(shipped(daemon)).toBeUndefined()
    expect(chatapp.sent.at(-1)?.text).toBe(`Rejected by chatapp:+${CHATAPP_PERSON}: the tests are red`)
  })

  test('is cancelled when no person answers in time', async () => {
    const { daemon, post } = await asked(SUPERVISED)
    await daemon.clock.advance(121_000)
    expect(await ended(daemon)).toMatchObject({ status: 'cancelled' })
    await daemon.idle()
    expect(chatapp.sent.at(-1)?.text).toBe('Expired: no answer in time')
    await post({ id: 'wamid.2', text: 'approve' })
    await daemon.idle()
    expect((await daemon.daemon.runtime.sops()?.runs({ limit: 10 }))?.filter(({ status }) => status === 'completed')).toEqual([])
    expect(shipped(daemon)).toBeUndefined()
  })

  test('asks before a tool call that needs approval, and calls the tool once', async () => {
    const { daemon, question, post, prompt } = await asked(SHELL, OPERATOR)
    expect(question?.text).toMatch(/^ship: step 1 of 1: shell wants to run\n\n```\ncommand: node mark\.mjs\n/)
    expect(prompt.text).toContain('shell wants to run')
    expect(await runOf(daemon)).toMatchObject({ status: 'running', step: 1 })
    await post({ id: 'wamid.2', text: 'yes' })
    expect(await ended(daemon)).toMatchObject({ status: 'completed', results: [{ output: expect.stringContaining('marked') }] })
    expect(readFileSync(join(daemon.dataDir, 'workspace', 'ran.txt'), 'utf8')).toBe('ran\n')
  })

  test('fails without the call when the tool call is rejected', async () => {
    const { daemon, post } = await asked(SHELL, OPERATOR)
    await post({ id: 'wamid.2', text: 'reject not now' })
    expect(await ended(daemon)).toMatchObject({ status: 'failed' })
    expect(existsSync(join(daemon.dataDir, 'workspace', 'ran.txt'))).toBe(false)
  })

  test('waits through a restart, and continues after an answer', async () => {
    const { daemon, post } = await asked()
    await daemon.down()
    await daemon.up()
    expect(await runOf(daemon)).toMatchObject({ status: 'paused_checkpoint' })
    await post({ id: 'wamid.2', text: 'lgtm' })
    expect(await ended(daemon)).toMatchObject({ status: 'completed' })
    expect(shipped(daemon)).toBe('v1.2')
    await daemon.idle()
    expect(chatapp.sent.filter(({ text }) => text.startsWith('ship: step 1'))).toHaveLength(1)
  })
})
