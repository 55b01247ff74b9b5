/** Measures the memory of an idle account of a channel: several accounts in one process less none, divided by their number. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { FoundChannel } from '../channels.ts'

const MIB = 1024 * 1024
/** The most memory of an account, unless the channel gives another bar. */
const MIB_MAX = 6

export interface AccountRow {
  readonly channel: string
  readonly accounts: number
  /** Resident memory of an account. */
  readonly residentMiB: number
  /** The same in the heap of JavaScript and in buffers. */
  readonly usedMiB: number
  readonly limitMiB: number
  readonly met: boolean
  /** What keeps an account connected. */
  readonly by: 'a connection' | 'a webhook'
}

interface Held {
  readonly before: { readonly rss: number; readonly used: number }
  readonly after: { readonly rss: number; readonly used: number }
  readonly listens: boolean
}

/** One account alone counts with the code that its channel loads. */
export async function measureAccounts({ name, id, testing }: FoundChannel, wanted: number): Promise<AccountRow> {
  const accounts = Math.min(wanted, testing.idle?.accountsMax ?? wanted)
  const fakes = run('serve-fakes.ts', [name, String(accounts)], 'pipe')
  try {
    const sections = await firstLine(fakes)
    const holder = run('hold-accounts.ts', [id, sections], 'ignore')
    const { before, after, listens } = JSON.parse(await firstLine(holder)) as Held
    const perAccount = (bytes: number): number => Math.round((bytes / accounts / MIB) * 100) / 100
    const [residentMiB, usedMiB] = [perAccount(after.rss - before.rss), perAccount(after.used - before.used)]
    const limitMiB = testing.idle?.mibMax ?? MIB_MAX
    return {
      channel: name,
      accounts,
      residentMiB,
      usedMiB,
      limitMiB,
      met: residentMiB <= limitMiB,
      by: listens ? 'a connection' : 'a webhook',
    }
  } finally {
    fakes.kill('SIGKILL')
  }
}

const run = (program: string, args: readonly string[], stdin: 'pipe' | 'ignore'): ChildProcess =>
  spawn(process.execPath, ['--expose-gc', join(import.meta.dirname, program), ...args], { stdio: [stdin, 'pipe', 'inherit'] })

/** Resolves to the first line of the output. Rejects if the process ends without one. */
function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (more: string) => {
      text += more
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')))
    })
    child.once('close', (code) => reject(new Error(`${child.spawnargs.slice(2, 4).join(' ')} ended with ${code} and no result`)))
  })
}
