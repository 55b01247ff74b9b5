/** Attempts by what a command is given: environment, descriptors, names of programs. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Rules } from '@sluice/testkit/rules'
import { CANARY, type InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'
import { connectionsTo } from './network.ts'

/** Programs backends start things with; the names are the workspace's to take. */
const LAUNCHERS = [
  'bwrap',
  'firejail',
  'docker',
  'podman',
  'sandbox-exec',
  'node',
  'sh',
  'env',
  'prlimit',
  'setsid',
  'setpriv',
  'timeout',
  'true',
]

export const environmentEscapes = (inBench: InBench): Rules => ({
  'what is given: secrets of the daemon are in no environment': inBench(async ({ run }) => {
    process.env.SVC_ESCAPE_SECRET = CANARY
    try {
      const { stdout } = await run('env; cat /proc/self/environ /proc/1/environ /proc/[0-9]*/environ 2> /dev/null')
      expect(stdout).not.toContain(CANARY)
    } finally {
      delete process.env.SVC_ESCAPE_SECRET
    }
  }),
  'what is given: a secret among it is in no argument': inBench(async ({ run }) => {
    const { stdout } = await run('cat /proc/[0-9]*/cmdline', { env: { GIVEN_SECRET: CANARY } })
    expect(stdout).not.toContain(CANARY)
  }),
  'what is given: no descriptor but three': inBench(async ({ run }) => {
    const { stdout } = await run('for fd in /proc/$$/fd/*; do [ -e "$fd" ] && basename "$fd"; done')
    // a shell may keep its script's or a pipe of its own, from ten on
    expect(stdout.split('\n').filter((fd) => fd !== '' && Number(fd) > 2 && Number(fd) < 10)).toEqual([])
  }),
  'what is given: no descriptor leads to a file outside': inBench(async ({ run, outside }) => {
    const { stdout } = await run('ls -l /proc/[0-9]*/fd 2> /dev/null')
    for (const folder of outside) expect(stdout).not.toContain(folder)
  }),
  "what is given: the loader's variables reach no program outside": inBench(async ({ run, outside, expectUntouched }) => {
    for (const folder of outside) {
      await run('true', { env: { LD_DEBUG: 'files', LD_DEBUG_OUTPUT: join(folder, 'loaded') } })
      expectUntouched()
    }
  }),
  "what is given: Node's variables reach no program outside": inBench(async ({ run, outside, expectUntouched }) => {
    const evil = pathToFileURL(join(outside[0] ?? '', 'new')).href
    const code = `import fs from 'node:fs'; fs.writeFileSync(new URL('${evil}'), 'x')`
    await run('true', { env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` } })
    expectUntouched()
  }),
  "what is given: shells' variables reach no program outside": inBench(async ({ run, workspace, outside, expectUntouched }) => {
    writeFileSync(join(workspace, 'start'), `echo new > '${outside[0]}/new'`)
    const start = join(workspace, 'start')
    await run('true', { env: { ENV: start, BASH_ENV: start, PERL5OPT: '-Mno_such', PYTHONSTARTUP: start, PROMPT_COMMAND: `. '${start}'` } })
    expectUntouched()
  }),
  "what is given: engines' variables lead nowhere": inBench(async ({ run }) => {
    expect(
      await connectionsTo('127.0.0.1', async (port) => {
        const at = `tcp://127.0.0.1:${port}`
        await run('true', { env: { DOCKER_HOST: at, CONTAINER_HOST: at, HTTP_PROXY: at, http_proxy: at, ALL_PROXY: at } })
      }),
    ).toBe(0)
  }),
  'what is given: a program of the workspace is not taken for one of the backend': inBench(
    async ({ run, workspace, outside, expectUntouched }) => {
      mkdirSync(join(workspace, 'bin'))
      for (const name of LAUNCHERS) {
        writeFileSync(join(workspace, 'bin', name), `#!/bin/sh\necho new > '${outside[0]}/new'\necho new > '${outside[1]}/new'\n`)
        chmodSync(join(workspace, 'bin', name), 0o755)
      }
      await run('true', { env: { PATH: `${join(workspace, 'bin')}:/usr/bin:/bin` } })
      expectUntouched()
    },
  ),
  'what is given: the name of a program is no option': inBench(async ({ execute, expectUntouched, outside }) => {
    for (const name of ['--bind', '--dev-bind', '--noprofile', '--privileged', '--help', '--version', '-v']) {
      const { stdout } = await execute(name, ['/', '/', 'cat', join(outside[0] ?? '', 'canary')])
      expect(stdout).toBe('')
    }
    expectUntouched()
  }),
  'what is given: no argument is an option': inBench(async ({ execute }) => {
    const args = ['--', '--bind', '/', '/', '--share-net', '-v', '/:/host', '--privileged']
    expect((await execute('echo', args)).stdout).toBe(`${args.join(' ')}\n`)
  }),
})
