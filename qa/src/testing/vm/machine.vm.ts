/** The machine itself: what every case relies on. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { promisify } from 'node:util'
import { vmCase } from '../../vm/vm-case.ts'

const run = promisify(execFile)

export default vmCase({
  tests: {
    'a separate kernel runs the Node of the host': async () => {
      assert.match(await readFile('/proc/version', 'utf8'), /Debian/)
      assert.equal(process.versions.node.split('.')[0], '24')
      assert.equal(process.getuid?.(), 0)
    },
    'files of the host are visible and writes stay in memory': async () => {
      const here = import.meta.filename
      await writeFile(here, 'gone with the machine')
      assert.equal(await readFile(here, 'utf8'), 'gone with the machine')
    },
    'the only network is the loopback': () => {
      assert.deepEqual(Object.keys(networkInterfaces()), ['lo'])
    },
    'programs of the host run': async () => {
      const { stdout } = await run('ls', ['/'])
      assert.match(stdout, /^proc$/m)
    },
  },
})
