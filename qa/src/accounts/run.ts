/** `pnpm accounts`: the memory of an idle account of each channel, compared with its bar. */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { CHANNELS } from '../channels.ts'
import { type AccountRow, measureAccounts } from './measure-accounts.ts'

const { values } = parseArgs({
  options: { channel: { type: 'string' }, accounts: { type: 'string', default: '20' }, out: { type: 'string' } },
})
const accounts = Number(values.accounts)
/** A channel without a platform has no account. */
const names = values.channel?.split(',') ?? CHANNELS.flatMap(({ name, testing }) => (testing.noPlatform === undefined ? [name] : []))
if (!Number.isInteger(accounts) || accounts < 1 || !names.every((name) => CHANNELS.some((channel) => channel.name === name))) {
  console.error('usage: pnpm accounts [--channel a,b] [--accounts 20] [--out FILE]')
  process.exit(2)
}
const rows: AccountRow[] = []
for (const channel of CHANNELS.filter(({ name }) => names.includes(name))) {
  try {
    rows.push(await measureAccounts(channel, accounts))
  } catch (error) {
    console.error(`${channel.name}: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 2
  }
  process.stderr.write(`${channel.name} `)
}
process.stderr.write('\n')
console.table(rows)
// The configuration has one section of each channel, so that a daemon has one account. A program that embeds several instances has more.
if (values.out !== undefined) writeFileSync(values.out, `${JSON.stringify(rows, null, 2)}\n`)
if (rows.some(({ met }) => !met)) process.exitCode = 1
