/** Proves that plugins run on this machine, by running one. */
import { errorText, type Finding } from '@sluice/sdk'
import type { LoadedPlugins } from './loaded-plugins.ts'
import type { PluginThreads } from './plugin-threads.ts'

/** Exports a page of memory, `alloc`, which always gives 0, and `run`, which returns what it was given. */
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

const SAID = 'as above, so below'

export async function selfCheck(
  threads: PluginThreads,
  { loaded, refused }: LoadedPlugins,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  return [
    await proof(threads, loaded.length, signal),
    ...refused.map(({ name, reason }) => ({
      status: 'warn' as const,
      detail: `${name} is not loaded: ${reason}`,
      fix: `sluice plugin remove ${name}, and install it anew`,
    })),
  ]
}

async function proof(threads: PluginThreads, count: number, signal: AbortSignal): Promise<Finding> {
  const module = new Uint8Array(Buffer.from(ECHO, 'hex'))
  const echo = { name: 'self check', hasNetwork: false, load: async () => module }
  try {
    const answer = await threads.run(echo, SAID, { signal, ask: async () => '' })
    if (answer !== SAID) throw new Error('it answered something else than it was to')
    return { status: 'ok', detail: `a module of our own runs in its worker; ${count} plugins are loaded` }
  } catch (error) {
    return {
      status: 'fail',
      detail: `a module of our own does not run: ${errorText(error)}`,
      fix: 'raise the limits under [plugins.limits]',
    }
  }
}
