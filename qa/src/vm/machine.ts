/** Boots a temporary virtual machine and runs one command in a copy-on-write view of this machine's files. */
import { constants } from 'node:fs'
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ended, lineReader, listen } from './guest-lines.ts'
import type { Kernel, Qemu } from './guest-packages.ts'
import { initialFiles, type Job } from './initial-files.ts'
import { CONSOLE_CHARS_MAX, runQemu } from './run-qemu.ts'

/** The parts that every machine shares. */
export interface Substrate {
  readonly qemu: Qemu
  readonly kernel: Kernel
  /** The folder whose files hide the host's files in the guest. */
  readonly packages: string
}

/** Receives the guest's output as it arrives. */
export interface MachineOutput {
  stdout(bytes: Uint8Array): void
  stderr(bytes: Uint8Array): void
  /** A line of JSON that the command wrote to descriptor 3. */
  report(line: string): void
}

/** How a machine runs. */
export interface MachineOptions {
  readonly memoryMib: number
  readonly output: MachineOutput
  readonly signal: AbortSignal
}

/** How a machine ended. */
export interface MachineEnd {
  /** The exit status of the command, or the reason why it has none. */
  readonly status: number | 'timeout' | 'died'
  /** The end of the messages of kernel and QEMU. */
  readonly console: string
  /** The time until the command started; 0 if it did not start. */
  readonly bootMs: number
  readonly tookMs: number
}

/** The time for boot and shutdown, in addition to the command's own limit. */
const BOOT_MS_MAX = 90_000
const KERNEL_OPTIONS = [
  'console=ttyS0',
  'quiet',
  'loglevel=4',
  'panic=-1',
  'oops=panic',
  'reboot=t',
  'mitigations=off',
  'nokaslr',
  'no_timer_check',
  'tsc=reliable',
  'random.trust_cpu=on',
  'audit=0',
  'cryptomgr.notests',
]

/** Rejects only if QEMU cannot be started; a failure in the guest is part of the result. */
export async function runMachine(substrate: Substrate, job: Job, { memoryMib, output, signal }: MachineOptions): Promise<MachineEnd> {
  const startedAtMs = performance.now()
  const tookMs = (): number => Math.round(performance.now() - startedAtMs)
  const folder = await mkdtemp(join(tmpdir(), 'sluice-vm-'))
  const servers: Server[] = []
  try {
    const initrd = join(folder, 'initrd')
    await writeFile(initrd, await initialFiles(substrate.kernel, substrate.packages, job))
    let status: number | undefined
    let bootMs = 0
    const reportLine = (line: string): void => {
      const sent: unknown = JSON.parse(line)
      if (typeof sent === 'object' && sent !== null && 'exit' in sent) status = Number(sent.exit)
      else if (typeof sent === 'object' && sent !== null && 'ready' in sent) bootMs = tookMs()
      else output.report(line)
    }
    servers.push(await listen(join(folder, 'out'), output.stdout))
    servers.push(await listen(join(folder, 'err'), output.stderr))
    servers.push(await listen(join(folder, 'report'), lineReader(reportLine)))
    const timer = AbortSignal.timeout(BOOT_MS_MAX + job.timeoutSecs * 1000)
    const failure = await bootPc(substrate, { folder, initrd, memoryMib, signal: AbortSignal.any([signal, timer]) })
    await Promise.all(servers.map((server) => ended(server)))
    const console = `${await readFile(join(folder, 'console'), 'utf8').catch(() => '')}${failure}`.slice(-CONSOLE_CHARS_MAX)
    return { status: status ?? (timer.aborted ? 'timeout' : 'died'), console, bootMs, tookMs: tookMs() }
  } finally {
    for (const server of servers) server.close()
    await rm(folder, { recursive: true, force: true })
  }
}

interface Boot {
  readonly folder: string
  readonly initrd: string
  readonly memoryMib: number
  readonly signal: AbortSignal
}

/** Runs QEMU to its end; resolves to its error output. */
async function bootPc({ qemu, kernel, packages }: Substrate, { folder, initrd, memoryMib, signal }: Boot): Promise<string> {
  const accel = (await hasKvm()) ? ['-accel', 'kvm', '-cpu', 'host'] : ['-accel', 'tcg,thread=multi,tb-size=256', '-cpu', 'max']
  const port = (name: string): string[] => [
    ...['-chardev', `socket,id=${name},path=${join(folder, name)}`],
    ...['-device', `virtserialport,chardev=${name},name=vm.${name}`],
  ]
  const share = (tag: string, path: string): string[] => [
    ...['-fsdev', `local,id=${tag},path=${path},security_model=none,readonly=on,multidevs=remap`],
    ...['-device', `virtio-9p-pci,fsdev=${tag},mount_tag=${tag}`],
  ]
  const args = [
    ...accel,
    ...['-machine', 'pc', '-m', String(memoryMib), '-nodefaults', '-display', 'none', '-no-reboot', '-nic', 'none'],
    ...['-kernel', kernel.image, '-initrd', initrd, '-append', KERNEL_OPTIONS.join(' ')],
    ...['-serial', `file:${join(folder, 'console')}`],
    ...['-device', 'virtio-serial', ...port('out'), ...port('err'), ...port('report')],
    ...share('host', '/'),
    ...share('packages', packages),
    ...['-object', 'rng-random,id=random,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=random'],
  ]
  return runQemu(qemu, args, signal)
}

/** Whether KVM works: without the processor's own extension, /dev/kvm cannot run a stock kernel. */
async function hasKvm(): Promise<boolean> {
  const usable = await access('/dev/kvm', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )
  return usable && /\b(?:vmx|svm)\b/.test(await readFile('/proc/cpuinfo', 'utf8'))
}
