/** The surroundings of the page in tests: a model that streams and calls tools, a channel whose receiver refuses, procedures, and hostile texts. */
import { cpSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { ROOT, run } from '../daemons/bundle.ts'
import { type PageDaemon, PROFILE, startPageDaemon } from './page-daemon.ts'

/** Texts that attack a page: markup, scripts, text that turns itself around, escapes of terminals, and a line of a megabyte. */
export const HOSTILE = [
  '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>',
  '\u202egnp.exe\u202c \u2066hidden\u2069 \u200bzero\u200bwidth \u001b[31mred\u001b]0;title\u0007 \u0000',
  '"><svg/onload=window.hacked=1> javascript:window.hacked=1 {{7*7}} #{window.hacked=1}',
  '[x](javascript:window.hacked=1) ![x](http://attacker.example/x.png) <a href="http://attacker.example">x</a>',
]
export const LONG_LINE = `begin ${'x'.repeat(60_000)} end`

export interface PageWorld {
  readonly gateway: PageDaemon
  readonly model: ModelServer
  /** The status with which the receiver of replies answers. */
  receiver: { status: number; readonly bodies: string[] }
  /** Sends a message over the channel `webhook`. */
  send(content: string, id?: string, sender?: string): Promise<void>
  stop(): Promise<void>
}

const listen = (server: Server): Promise<number> =>
  new Promise((done) => server.listen(0, '127.0.0.1', () => done((server.address() as AddressInfo).port)))

export async function startPageWorld(extra = ''): Promise<PageWorld> {
  const receiver = { status: 400, bodies: [] as string[] }
  const replies = createServer((request, answer) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      receiver.bodies.push(body)
      answer.writeHead(receiver.status).end()
    })
  })
  const port = await listen(replies)
  const model = await startModelServer({
    apiKey: null,
    answer: ({ lastUserText, body }) => {
      const last = (body as { messages: readonly { role: string; content: unknown }[] }).messages.at(-1)
      if (last?.role === 'tool') return { text: `It says: ${String(last.content)}` }
      if (lastUserText.startsWith('run ')) return { toolCalls: [{ name: 'shell', input: { command: lastUserText.slice('run '.length) } }] }
      if (lastUserText.startsWith('slowly')) return { text: 'one two three four five six seven eight nine ten '.repeat(8), chunkMs: 60 }
      return { text: `heard: ${lastUserText.replace(/<\/?untrusted[^>]*>/g, '').trim()}` }
    },
  })
  const gateway = await startPageDaemon(`[provider]
kind = "openai"
base_url = "${model.url}/v1"
model = "test"
[security.sandbox]
enabled = false
[security.policy]
level = "supervised"
[channels_config.webhook]
send_url = "http://127.0.0.1:${port}/replies"
allowed_senders = ["*"]
${extra}`)
  return {
    gateway,
    model,
    receiver,
    async send(content, id = `m-${Math.random()}`, sender = 'ada') {
      const answer = await fetch(`${gateway.address}/webhook/channel`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id, sender, content }),
      })
      if (!answer.ok) throw new Error(`The message was refused: ${answer.status} ${await answer.text()}`)
    },
    async stop() {
      await gateway.stop()
      await model.close()
      replies.close()
    },
  }
}

/** Puts the examples of procedures into the data directory. */
export const addProcedures = ({ dataDir }: PageDaemon): void =>
  cpSync(join(ROOT, 'examples/sops'), join(dataDir, 'sops'), { recursive: true })

/** Links the command line with the device of the tests: the memories of the person belong to the command line. */
export async function linkCommandLine({ dataDir, call }: PageDaemon): Promise<void> {
  const { stdout, stderr } = await run(PROFILE, ['people', 'link', '--json', '--data-dir', dataDir])
  if (!stdout.includes('code')) throw new Error(`No code: ${stderr}`)
  await call('POST', '/api/people/links', { code: (JSON.parse(stdout) as { code: string }).code })
}
