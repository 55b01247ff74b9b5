/** The self-check of `sluice doctor`: runs a built-in plugin and lists the plugins that are not loaded. */
import { errorText, type Finding } from '@sluice/sdk'
import type { LoadedPlugins } from './loaded-plugins.ts'
import type { PluginThreads } from './plugin-threads.ts'

/** A module with one page of memory, an `alloc` that always returns 0, and a `run` that returns its input. */
const ECHO = [
  '0061736d01000000', // header
  '010c0260017f017f60027f7f017e', // types: i32 → i32, (i32, i32) → i64
  '0303020001', // functions
  '0503010001', // memory
  '0718', // exports
  '03066d656d6f72790200', // memory
  '05616c6c6f630000', // alloc
  '0372756e0001', // run
  '0a1302', // code
  '040041000b', // alloc: 0
  '0c002000ad4220862001ad840b', // run: pointer << 32 | length
].join('')

const INPUT = 'plugin self-check'

export async function selfCheck(
  threads: PluginThreads,
  { loaded, refused }: LoadedPlugins,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  return [
    await runEcho(threads, loaded.length, signal),
    ...refused.map(({ name, reason }) => ({
      status: 'warn' as const,
      detail: `${name} is not loaded: ${reason}`,
      fix: `run sluice plugin remove ${name}, then install it again`,
    })),
  ]
}

async function runEcho(threads: PluginThreads, count: number, signal: AbortSignal): Promise<Finding> {
  const module = new Uint8Array(Buffer.from(ECHO, 'hex'))
  const echo = { name: 'self check', hasNetwork: false, load: async () => module }
  try {
    const answer = await threads.run(echo, INPUT, { signal, sendRequest: async () => '' })
    if (answer !== INPUT) throw new Error('it returned a wrong answer')
    return { status: 'ok', detail: `the built-in test plugin runs; ${count} ${count === 1 ? 'plugin is' : 'plugins are'} loaded` }
  } catch (error) {
    return {
      status: 'fail',
      detail: `the built-in test plugin does not run: ${errorText(error)}`,
      fix: 'raise the limits under [plugins.limits]',
    }
  }
}
