/** Two agents in one built daemon: on two channels and two accounts, with limits and files of their own, also through a crash. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ChatappFake, chatappRequest, startChatappFake } from '@sluice/channel-chatapp/testing'
import { startTextrelayFake, TEXTRELAY_TOKEN, type TextrelayFake } from '@sluice/channel-textrelay/testing'
import { withoutFrames } from '@sluice/sdk'
import type { ModelStep } from '@sluice/testkit/model-script'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, post, type RunningDaemon, run, scratch, startDaemon, token } from '../daemons/bundle.ts'
import { sendRequest } from '../daemons/send-request.ts'

const SUPPORT_NUMBER = '+15550009999'
const OTHER_NUMBER = '+15550001111'

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
}

let model: ModelServer
let chatapp: ChatappFake
let textrelay: TextrelayFake
let folder: ReturnType<typeof scratch>
let daemon: RunningDaemon
let bearer: string

/** Calls the tools that a message lists as `tool input; tool input`, one after the other, and replies with their results. */
function answer(asked: string, { messages }: Asked): ModelStep {
  const results = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1).filter(({ role }) => role === 'tool')
  // The memories that fit a message come before it.
  const said = withoutFrames(asked).trim().split('\n').at(-1) ?? ''
  const call = said.split('; ')[results.length]
  const [, name, input] = call?.match(/^(\w+) (\{.*\})$/) ?? []
  if (name === undefined || input === undefined) return { text: `Results: ${results.map(({ content }) => String(content)).join(' | ')}` }
  return { toolCalls: [{ name, input: JSON.parse(input) }] }
}

beforeAll(async () => {
  model = await startModelServer({
    apiKey: null,
    answer: ({ lastUserText, body }) => answer(lastUserText, body as Asked),
  })
  chatapp = await startChatappFake()
  textrelay = await startTextrelayFake({
    chats: { 'chat-1': '+15550003333', 'chat-2': '+15550004444' },
    phones: [OTHER_NUMBER, SUPPORT_NUMBER],
  })
  folder = scratch(`
[provider]
kind = "openai"
base_url = "${model.url}/v1"
model = "test"
[security.sandbox]
enabled = false
[security.policy]
level = "supervised"
auto_approve = ["shell"]
allowed_commands = ["echo"]
[agents.support]
system_prompt = "You are the support agent."
tools = ["shell", "file_read", "file_write", "memory_store", "memory_recall"]
policy = { allowed_commands = ["touch", "sleep", "date"] }
[channels_config.chatapp]
access_token = "${chatapp.accessToken}"
phone_number_id = "200000000000002"
verify_token = "verify-token-0123456789"
app_secret = "chatapp-app-secret-01"
allowed_numbers = ["*"]
api_url = "${chatapp.url}"
[channels_config.textrelay]
api_token = "${TEXTRELAY_TOKEN}"
from_phone = "${OTHER_NUMBER}"
allowed_senders = ["*"]
api_url = "${textrelay.apiUrl}"
account_agents = { "${SUPPORT_NUMBER}" = "support" }
`)
  daemon = await startDaemon('full', folder.dir)
  bearer = await token('full', folder.dir)
}, 60_000)

afterAll(async () => {
  daemon.kill('SIGTERM')
  await daemon.exited
  await Promise.all([model.close(), chatapp.close(), textrelay.close()])
  folder.dispose()
})

const toChatapp = (text: string) => {
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15550001111', phone_number_id: '200000000000002' },
    messages: [{ from: '15550002222', id: `wamid.${text}`, timestamp: '1767225600', type: 'text', text: { body: text } }],
  }
  const body = { object: 'whatsapp_business_account', entry: [{ id: '1', changes: [{ field: 'messages', value }] }] }
  return sendRequest(daemon.url, chatappRequest(Buffer.from(JSON.stringify(body))))
}

const toTextrelay = (number: string, chat: string, text: string) =>
  post(`${daemon.url}/textrelay`, {
    event_type: 'message.received',
    event_id: `${number} ${chat} ${text}`,
    data: {
      sender_handle: { handle: chat === 'chat-1' ? '+15550003333' : '+15550004444' },
      chat: { id: chat, owner_handle: { handle: number } },
      parts: [{ type: 'text', value: text }],
    },
  })

interface Approvals {
  readonly approvals: readonly { readonly run_id: string; readonly step_id: string }[]
}
const byOperator = () => ({ authorization: `Bearer ${bearer}` })
const asOperator = (message: string, headers: Record<string, string> = {}) =>
  post(`${daemon.url}/webhook`, { message }, { authorization: `Bearer ${bearer}`, ...headers })

const repliesIn = (chat: string) => textrelay.sent.filter((sent) => sent.chat === chat).map(({ text }) => text)
const fileOf = (path: string) => join(folder.dir, path)

test('a command that one agent may run is refused to the other, in both directions and on both accounts', async () => {
  const both = 'shell {"command":"echo from-main"}; shell {"command":"touch by-support"}'
  expect((await toChatapp(both)).status).toBe(200)
  expect((await toTextrelay(OTHER_NUMBER, 'chat-2', both)).status).toBe(200)
  expect((await toTextrelay(SUPPORT_NUMBER, 'chat-1', both)).status).toBe(200)
  // Without a sandbox, an operator decides a command that a sender asked for.
  const [question] = await eventually(
    async () => ((await (await fetch(`${daemon.url}/api/approvals`, { headers: byOperator() })).json()) as Approvals).approvals,
    (approvals) => approvals.length === 1,
  )
  const answer = await post(`${daemon.url}/api/approvals/${question?.run_id}/${question?.step_id}`, { approved: true }, byOperator())
  expect(answer.status).toBe(200)
  const [ofSupport = ''] = await eventually(
    async () => repliesIn('chat-1'),
    (texts) => texts.length === 1,
  )
  const [ofMain = ''] = await eventually(
    async () => repliesIn('chat-2'),
    (texts) => texts.length === 1,
  )
  const [onChatapp] = await eventually(
    async () => chatapp.sent,
    (sent) => sent.length === 1,
  )
  expect(ofSupport).toContain("'echo'")
  expect(ofSupport).toContain('[exit code 0]')
  expect(ofSupport).not.toContain('from-main\n')
  for (const text of [ofMain, onChatapp?.text]) {
    expect(text).toContain('from-main')
    expect(text).toContain("'touch'")
  }
  expect(existsSync(fileOf('workspaces/support/by-support'))).toBe(true)
  expect(existsSync(fileOf('workspace/by-support'))).toBe(false)
})

test('files of one agent are out of reach of the other', async () => {
  const write = (text: string) => `file_write {"path":"note.txt","content":"${text}"}`
  await asOperator(write('of main'))
  await asOperator(write('of support'), { 'x-agent': 'support' })
  expect(readFileSync(fileOf('workspace/note.txt'), 'utf8')).toBe('of main')
  expect(readFileSync(fileOf('workspaces/support/note.txt'), 'utf8')).toBe('of support')
  const paths = ['../../workspace/note.txt', fileOf('workspace/note.txt')]
  for (const path of paths) {
    const { body } = await asOperator(`file_read {"path":"${path}"}`, { 'x-agent': 'support' })
    expect(body.response).not.toContain('of main')
    expect(body.response).toContain('outside the workspace')
  }
})

test('memories of one agent are not recalled by the other', async () => {
  await asOperator('memory_store {"key":"code","content":"4711"}', { 'x-agent': 'support' })
  expect((await asOperator('memory_recall {"query":"4711"}')).body.response).toContain('No memory matches')
  expect((await asOperator('memory_recall {"query":"4711"}', { 'x-agent': 'support' })).body.response).toContain('4711')
})

test('a turn that kill -9 interrupts is resumed by its own agent, under its own limits', async () => {
  const steps = 'shell {"command":"touch before"}; shell {"command":"sleep 5"}; shell {"command":"echo x"}; shell {"command":"touch after"}'
  const headers = { 'x-agent': 'support', 'x-session-id': 'home', 'x-idempotency-key': 'once', prefer: 'respond-async' }
  const accepted = await asOperator(steps, headers)
  expect(accepted.status).toBe(202)
  await eventually(
    async () => model.requests.filter(({ lastUserText }) => lastUserText === steps).length,
    (count) => count === 2,
  )
  await eventually(
    async () => existsSync(fileOf('workspaces/support/before')),
    (exists) => exists,
  )
  daemon.kill('SIGKILL')
  await daemon.exited
  daemon = await startDaemon('full', folder.dir)
  const turn = await eventually(
    async () => {
      const response = await fetch(`${daemon.url}${accepted.body.status_url}`, { headers: { authorization: `Bearer ${bearer}` } })
      return (await response.json()) as { status: string; response: string; agent: string; session_id: string; attempts: number }
    },
    ({ status }) => status === 'done',
  )
  expect(turn).toMatchObject({ agent: 'support', session_id: expect.stringMatching(/^agent:support\/.*\/home$/), attempts: 2 })
  expect(turn.response).toContain("'echo'")
  expect(existsSync(fileOf('workspaces/support/after'))).toBe(true)
  expect(existsSync(fileOf('workspace/after'))).toBe(false)
  const [prompt] = (model.requests.findLast(({ lastUserText }) => lastUserText === steps)?.body as Asked | undefined)?.messages ?? []
  expect(JSON.stringify(prompt)).toContain('You are the support agent.')
})

test('the command line talks to an agent and names the known ones', async () => {
  expect((await run('full', ['status', '--data-dir', folder.dir])).stdout).toContain('agents:      main, support')
  daemon.kill('SIGTERM')
  await daemon.exited
  const agent = (...args: string[]) => run('full', ['agent', '--data-dir', folder.dir, '-m', 'shell {"command":"date -u"}', ...args])
  expect((await agent('--agent', 'support')).stdout).toContain('[exit code 0]')
  expect((await agent()).stdout).toContain("'date'")
  const unknown = await agent('--agent', 'suport')
  expect(unknown.code).not.toBe(0)
  expect(unknown.stderr).toContain('did you mean "support"? The agents are main, support.')
  daemon = await startDaemon('full', folder.dir)
})
