/** A case for the virtual machine: the devices of the machine, and tests that run in it one after another. */

/** Passed to each test. */
export interface VmTestContext {
  /** Aborts when the test's time is over. */
  readonly signal: AbortSignal
  /** Registers a step to run after the test, whatever its result; the last step registered runs first. */
  after(undo: () => void | Promise<void>): void
}

/** A test; it fails by throwing. */
export type VmTest = (context: VmTestContext) => Promise<void> | void

/** The boards whose device tree works with QEMU's Raspberry Pi 3. */
export type RaspiModel = 'raspi-3b' | 'raspi-3b-plus' | 'raspi-zero-2w'

/** The machine and tests of a case. */
export interface VmCase {
  /**
   * `pc` (default): the guest sees all of this machine's files. The others: a Raspberry Pi with its own device tree, on which
   * the case runs as one bundle, without modules, udev or files of this machine.
   */
  readonly machine?: 'pc' | RaspiModel
  /**
   * Kernel modules, loaded in this order before the first test, such as `i2c-stub chip_addr=0x50`. Besides Debian's modules
   * there are `gpio-sim` and `spi-sim`, which are built here; if the build is not possible, the case is skipped.
   */
  readonly modules?: readonly string[]
  /** Whether udev runs; programs that list USB devices need it. */
  readonly udev?: boolean
  /** True: this machine's systemd is the first process of the guest, and starts the tests as a service. Only for `pc`. */
  readonly systemd?: boolean
  readonly memoryMib?: number
  /** The time limit of one test in seconds; default 90, because the emulated machine is slow. */
  readonly testTimeoutSecs?: number
  /** Called on the host before the machine boots. Returns why the case cannot run here; `undefined` if it can. */
  readonly skipReason?: () => Promise<string | undefined> | string | undefined
  /** Tests by title, in order; a failed test does not stop the others. */
  readonly tests: Readonly<Record<string, VmTest>>
}

/** Types a case; each file `src/testing/vm/<name>.vm.ts` has one as its default export. */
export const vmCase = (definition: VmCase): VmCase => definition

/** The default time limit of a test. */
export const TEST_TIMEOUT_SECS = 90

/** The result of one test, a line of the guest's report. */
export interface VmTestResult {
  readonly test: string
  readonly passed: boolean
  readonly tookMs: number
  /** The error with its stack. */
  readonly error?: string
}
