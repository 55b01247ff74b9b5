/** Commands of two agents in the sandbox of this machine: neither one reads or writes the workspace of the other. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelStep } from '@sluice/testkit/model-script'
import { startModelServer } from '@sluice/testkit/model-server'
import { expect, test } from 'vitest'
import { post, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
}

/** Runs the whole message as one command, and replies with its output. */
function answer(command: string, { messages }: Asked): ModelStep {
  const last = messages.at(-1)
  if (last?.role === 'tool') return { text: String(last.content) }
  return { toolCalls: [{ name: 'shell', input: { command } }] }
}

test('a command of one agent reaches no file of the other, by no path, link or process', async ({ skip }) => {
  const model = await startModelServer({ apiKey: null, answer: ({ lastUserText, body }) => answer(lastUserText, body as Asked) })
  const folder = scratch(`
[provider]
kind = "openai"
base_url = "${model.url}/v1"
model = "test"
[security.policy]
level = "full"
allowed_commands = ["*"]
forbidden_paths = []
[agents.support]
`)
  try {
    const doctor = (await run('full', ['doctor', '--data-dir', folder.dir])).stdout
    skip(!/^ok {4}sandbox {3,}/m.test(doctor), 'no sandbox works on this machine')
    const daemon = await startDaemon('full', folder.dir)
    try {
      const bearer = await token('full', folder.dir)
      const [ofMain, ofSupport] = ['workspace', 'workspaces/support'].map((name) => join(folder.dir, name)) as [string, string]
      for (const root of [ofMain, ofSupport]) {
        mkdirSync(root, { recursive: true })
        writeFileSync(join(root, 'secret'), `secret of ${root};`)
      }
      symlinkSync(ofMain, join(ofSupport, 'link'))
      symlinkSync(ofSupport, join(ofMain, 'link'))
      const command = async (agent: string, text: string): Promise<string> => {
        const { body } = await post(`${daemon.url}/webhook`, { message: text }, { authorization: `Bearer ${bearer}`, 'x-agent': agent })
        return String(body.response)
      }
      for (const [agent, own, other] of [
        ['main', ofMain, ofSupport],
        ['support', ofSupport, ofMain],
      ] as const) {
        expect(await command(agent, 'cat secret')).toContain(`secret of ${own};`)
        for (const path of [
          other,
          'link',
          `/proc/1/root${other}`,
          `/proc/${process.pid}/root${other}`,
          `/proc/self/root${other}`,
          '/proc/1/cwd',
        ]) {
          // Encoded, because the policy refuses a command that names the other workspace.
          const encoded = Buffer.from(path).toString('base64')
          const said = await command(
            agent,
            `sh -c 'P=$(echo ${encoded} | base64 -d); cat "$P/secret"; echo x > "$P/by-${agent}"; ln -s "$P" later; cat later/secret; rm later; echo; echo end'`,
          )
          expect(said).toMatch(/^end$/m)
          expect(said).not.toContain(`secret of ${other};`)
        }
        expect(existsSync(join(other, `by-${agent}`))).toBe(false)
        expect(readFileSync(join(other, 'secret'), 'utf8')).toBe(`secret of ${other};`)
      }
    } finally {
      daemon.kill('SIGTERM')
      await daemon.exited
    }
  } finally {
    await model.close()
    folder.dispose()
  }
}, 60_000)
