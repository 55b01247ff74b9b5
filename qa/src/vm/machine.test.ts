/** Boots a machine, which takes some seconds; runs only with SLUICE_HARDWARE=1. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { findQemu, guestKernel, guestPackages } from './guest-packages.ts'
import { type Job, quote } from './initial-files.ts'
import { runMachine } from './machine.ts'

const job = (command: string): Job => ({
  command,
  folder: '/',
  modules: [],
  udev: false,
  systemd: false,
  env: { WORD: "it's" },
  timeoutSecs: 20,
})

async function boot(command: string) {
  const packages = await guestPackages()
  const substrate = { packages, kernel: await guestKernel(packages), qemu: await findQemu() }
  const stdout: Uint8Array[] = []
  const stderr: Uint8Array[] = []
  const reports: string[] = []
  const end = await runMachine(substrate, job(command), {
    memoryMib: 512,
    signal: AbortSignal.timeout(60_000),
    output: {
      stdout: (bytes) => void stdout.push(bytes),
      stderr: (bytes) => void stderr.push(bytes),
      report: (line) => void reports.push(line),
    },
  })
  return { end, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr), reports }
}

describe.skipIf(process.env.SLUICE_HARDWARE !== '1')('a machine (skipped without SLUICE_HARDWARE=1)', () => {
  test('returns output, errors, report and exit status of its command unchanged', { timeout: 90_000 }, async () => {
    const bytes = 'head -c 1000000 /dev/zero | openssl enc -aes-128-ctr -K 00 -iv 00 2>/dev/null || head -c 1000000 /bin/bash'
    const command = `{ ${bytes}; } | tee /tmp/sent; sha256sum /tmp/sent >&2; echo "$WORD" >&2; echo '{"a":1}' >&3; exit 42`
    const { end, stdout, stderr, reports } = await boot(command)
    expect(end).toMatchObject({ status: 42 })
    const [hash] = stderr.toString().split(' ')
    expect(stdout.length).toBe(1_000_000)
    expect(createHash('sha256').update(stdout).digest('hex')).toBe(hash)
    expect(stderr.toString()).toMatch(/it's\n$/)
    expect(reports).toEqual(['{"a":1}'])
  })

  test('reports a machine that ends before its command', { timeout: 90_000 }, async () => {
    const { end } = await boot('echo b >/proc/sysrq-trigger; sleep 10')
    expect(end.status).toBe('died')
  })
})

test('quotes any text as one shell word', () => {
  expect(quote(`a 'b' $(c)`)).toBe(`'a '\\''b'\\'' $(c)'`)
})
