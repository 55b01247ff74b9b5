/** Attempts through what a command is given: environment, file descriptors and program names. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Rules } from '@sluice/testkit/rules'
import { CANARY, type InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'
import { connectionsTo } from './network.ts'

/** Programs that backends start; a program of the workspace may have the same name. */
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
  'inputs: no environment contains secrets of the daemon': inBench(async ({ run }) => {
    process.env.SVC_ESCAPE_SECRET = CANARY
    try {
      const { stdout } = await run('env; cat /proc/self/environ /proc/1/environ /proc/[0-9]*/environ 2> /dev/null')
      expect(stdout).not.toContain(CANARY)
    } finally {
      delete process.env.SVC_ESCAPE_SECRET
    }
  }),
  'inputs: no argument contains a secret of the environment': inBench(async ({ run }) => {
    const { stdout } = await run('cat /proc/[0-9]*/cmdline', { env: { GIVEN_SECRET: CANARY } })
    expect(stdout).not.toContain(CANARY)
  }),
  'inputs: only three descriptors are open': inBench(async ({ run }) => {
    const { stdout } = await run('for fd in /proc/$$/fd/*; do [ -e "$fd" ] && basename "$fd"; done')
    // A shell may keep its script or a pipe of its own on descriptors from ten on.
    expect(stdout.split('\n').filter((fd) => fd !== '' && Number(fd) > 2 && Number(fd) < 10)).toEqual([])
  }),
  'inputs: no descriptor leads to an outside file': inBench(async ({ run, outside }) => {
    const { stdout } = await run('ls -l /proc/[0-9]*/fd 2> /dev/null')
    for (const folder of outside) expect(stdout).not.toContain(folder)
  }),
  'inputs: variables of the loader affect no outside program': inBench(async ({ run, outside, expectUntouched }) => {
    for (const folder of outside) {
      await run('true', { env: { LD_DEBUG: 'files', LD_DEBUG_OUTPUT: join(folder, 'loaded') } })
      expectUntouched()
    }
  }),
  'inputs: variables of Node affect no outside program': inBench(async ({ run, outside, expectUntouched }) => {
    const evil = pathToFileURL(join(outside[0] ?? '', 'new')).href
    const code = `import fs from 'node:fs'; fs.writeFileSync(new URL('${evil}'), 'x')`
    await run('true', { env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` } })
    expectUntouched()
  }),
  'inputs: variables of shells affect no outside program': inBench(async ({ run, workspace, outside, expectUntouched }) => {
    writeFileSync(join(workspace, 'start'), `echo new > '${outside[0]}/new'`)
    const start = join(workspace, 'start')
    await run('true', { env: { ENV: start, BASH_ENV: start, PERL5OPT: '-Mno_such', PYTHONSTARTUP: start, PROMPT_COMMAND: `. '${start}'` } })
    expectUntouched()
  }),
  'inputs: variables of container engines have no effect': inBench(async ({ run }) => {
    expect(
      await connectionsTo('127.0.0.1', async (port) => {
        const at = `tcp://127.0.0.1:${port}`
        await run('true', { env: { DOCKER_HOST: at, CONTAINER_HOST: at, HTTP_PROXY: at, http_proxy: at, ALL_PROXY: at } })
      }),
    ).toBe(0)
  }),
  'inputs: a program of the workspace never replaces one of the backend': inBench(async ({ run, workspace, outside, expectUntouched }) => {
    mkdirSync(join(workspace, 'bin'))
    for (const name of LAUNCHERS) {
      writeFileSync(join(workspace, 'bin', name), `#!/bin/sh\necho new > '${outside[0]}/new'\necho new > '${outside[1]}/new'\n`)
      chmodSync(join(workspace, 'bin', name), 0o755)
    }
    await run('true', { env: { PATH: `${join(workspace, 'bin')}:/usr/bin:/bin` } })
    expectUntouched()
  }),
  'inputs: a program name is never an option': inBench(async ({ execute, expectUntouched, outside }) => {
    for (const name of ['--bind', '--dev-bind', '--noprofile', '--privileged', '--help', '--version', '-v']) {
      const { stdout } = await execute(name, ['/', '/', 'cat', join(outside[0] ?? '', 'canary')])
      expect(stdout).toBe('')
    }
    expectUntouched()
  }),
  'inputs: an argument is never an option': inBench(async ({ execute }) => {
    const args = ['--', '--bind', '/', '/', '--share-net', '-v', '/:/host', '--privileged']
    expect((await execute('echo', args)).stdout).toBe(`${args.join(' ')}\n`)
  }),
})
