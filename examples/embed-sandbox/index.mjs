// Runs a command of another person in a sandbox: it writes in one folder only, sees no key of yours and reaches no network.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSandbox } from '@sluice/daemon/sandbox'
import container from '@sluice/sandbox-container'
import fsrestrict from '@sluice/sandbox-fsrestrict'
import jail from '@sluice/sandbox-jail'
import seatbelt from '@sluice/sandbox-seatbelt'
import userns from '@sluice/sandbox-userns'

const { DATA_DIR = mkdtempSync(join(tmpdir(), 'embed-sandbox-')) } = process.env
const given = process.argv.slice(2).filter((word) => word !== '--try')
const script = given.join(' ') || 'echo "I run in $PWD"; echo mine > note.txt; echo yours > /etc/note.txt; cat note.txt'

await using sandbox = await openSandbox({ features: [userns, jail, fsrestrict, seatbelt, container], dataDir: DATA_DIR, logger: false })
console.log(`sandbox: ${sandbox.backend.name} (${sandbox.backend.detail})`)
try {
  const { exitCode, stdout, stderr } = await sandbox.run({ file: 'sh', args: ['-c', script], timeoutMs: 10_000 })
  process.stdout.write(stdout)
  process.stderr.write(stderr)
  console.log(`exit code: ${exitCode}`)
} catch (error) {
  if (error.code !== 'unavailable') throw error
  console.log(`nothing was run: ${error.message}`)
}
