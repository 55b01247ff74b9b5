/** A fake of the agent-browser command with the same output. */
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import type { SpawnRequest } from '@sluice/sdk'

/** The output of the command, and its exit code. */
export interface Printed {
  readonly stdout: string
  readonly stderr?: string
  readonly exitCode?: number
}

const reply = (value: object): Printed => ({ stdout: JSON.stringify(value) })
const success = (data: object | null): Printed => reply({ success: true, data })

/**
 * Runs the command with the arguments and the environment of a request. `open` loads the page through the proxy of the environment, unless the
 * path is `/around`. `scroll` ends only with the signal of the request.
 */
export async function agentBrowser({ args, env, signal }: SpawnRequest): Promise<Printed> {
  if (args[0] === '--version') return { stdout: 'agent-browser 1.2.3\n' }
  const [verb, first = '', second = ''] = args.slice(2, -1)
  switch (verb) {
    case 'open':
      if (new URL(first).pathname === '/around') return success({ url: first })
      return success({ url: first, title: 'the page', status: await load(first, env) })
    case 'get':
      return success({ [first]: `the ${first}` })
    case 'is':
      return success({ visible: true })
    case 'snapshot':
      return success({ snapshot: '- button "Go" [ref=e1]', refs: {} })
    case 'screenshot':
      writeFileSync(first, 'PNG')
      return success({ path: first })
    case 'press':
      return { stdout: 'pressed, without JSON' }
    case 'hover':
      return reply({ success: false, error: 'no such element' })
    case 'click':
      return { ...success(null), stderr: `broken ${first} ${second}`, exitCode: 3 }
    case 'scroll':
      return untilAborted(signal)
    default:
      return success(null)
  }
}

/** Returns the status of a page that the proxy of the environment loads. */
function load(url: string, env: SpawnRequest['env']): Promise<number | undefined> {
  const pass = Buffer.from(`${env.AGENT_BROWSER_PROXY_USERNAME}:${env.AGENT_BROWSER_PROXY_PASSWORD}`).toString('base64')
  const { hostname, port } = new URL(env.AGENT_BROWSER_PROXY ?? '')
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  const headers = { 'proxy-authorization': `Basic ${pass}` }
  request({ hostname, port, path: url, headers, agent: false }, (response) => resolve(response.resume().statusCode))
    .on('error', reject)
    .end()
  return promise
}

const untilAborted = (signal: AbortSignal | undefined): Promise<Printed> =>
  new Promise((resolve) => signal?.addEventListener('abort', () => resolve({ stdout: '' }), { once: true }))
