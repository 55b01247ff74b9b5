/** A fake model that calls the shell on request and replies with the result. */

import type { ModelStep } from '@sluice/testkit/model-script'
import { type ModelRequest, type ModelServer, startModelServer } from '@sluice/testkit/model-server'

export interface ShellModel extends ModelServer {
  /** Sections of the configuration: this model as provider, and a policy that asks people. */
  readonly toml: string
  /** The results of tool calls that the model got. */
  readonly results: readonly string[]
}

/** A program for the workspace that appends a line to `ran.txt` each time it runs. */
export const MARK_FILES = {
  'mark.mjs': "import { appendFileSync } from 'node:fs'\nappendFileSync('ran.txt', 'ran\\n')\nconsole.log('marked')\n",
}
const COMMAND = 'node mark.mjs'

/** A message that begins with `run` makes the model call the shell; any other message is answered with `heard: …`. */
export async function startShellModel(): Promise<ShellModel> {
  const results: string[] = []
  const answer = ({ lastUserText, body }: ModelRequest): ModelStep => {
    const last = (body as { messages: readonly { role: string; content: unknown }[] }).messages.at(-1)
    if (last?.role === 'tool') {
      results.push(String(last.content))
      return { text: `It says: ${String(last.content)}` }
    }
    return lastUserText.startsWith('run')
      ? { toolCalls: [{ name: 'shell', input: { command: COMMAND } }] }
      : { text: `heard: ${lastUserText}` }
  }
  const server = await startModelServer({ apiKey: null, answer })
  return {
    ...server,
    results,
    toml: `[provider]\nkind = "openai"\nbase_url = "${server.url}/v1"\nmodel = "test"\n[security.sandbox]\nenabled = false\n[security.policy]\nlevel = "supervised"\n`,
  }
}
