/** What a case for the virtual machine is: which devices the machine has, and tests that run in it, one after the other. */

export interface VmTestContext {
  /** Aborted when the test's time is over. */
  readonly signal: AbortSignal
  /** Runs when the test has ended, however it did; the last one given first. */
  after(undo: () => void | Promise<void>): void
}

export type VmTest = (context: VmTestContext) => Promise<void> | void

/** Those whose device tree QEMU's Raspberry Pi 3 can be booted by. */
export type RaspiModel = 'raspi-3b' | 'raspi-3b-plus' | 'raspi-zero-2w'

export interface VmCase {
  /**
   * `pc`, unless said: all of this machine's files are there. The others: a Raspberry Pi by its own device tree, on which the
   * case runs as one bundle, without modules, udev or any file of this machine.
   */
  readonly machine?: 'pc' | RaspiModel
  /**
   * Kernel modules, loaded in this order before the first test: `i2c-stub chip_addr=0x50`. Beside Debian's own there are
   * `gpio-sim` and `spi-sim`, which are built here; where they cannot be, the case is skipped.
   */
  readonly modules?: readonly string[]
  /** Whether udev runs: what lists USB devices asks it. */
  readonly udev?: boolean
  readonly memoryMib?: number
  /** Of one test; 90 unless said: a machine is emulated, on a host that may be busy. */
  readonly testTimeoutSecs?: number
  /** Asked on the host before the machine boots: why the case cannot run there; undefined: it can. */
  readonly lacks?: () => Promise<string | undefined> | string | undefined
  /** By title, which begins with the rule it holds. The keys keep their order, and a test that fails does not end the others. */
  readonly tests: Readonly<Record<string, VmTest>>
}

/** Gives the type; a file `src/testing/vm/<name>.vm.ts` has one as its default export. */
export const vmCase = (definition: VmCase): VmCase => definition

export const TEST_TIMEOUT_SECS = 90

/** One line of the guest's report. */
export interface VmTestResult {
  readonly test: string
  readonly passed: boolean
  readonly tookMs: number
  /** The error, with its stack. */
  readonly error?: string
}
