/** The host of cases in the virtual machine: everything is in memory, but the clock is real. */

import { systemClock } from '@sluice/kit'
import type { Host } from '@sluice/sdk'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'

/** Pass the `keyValue` of an earlier host to simulate a restart of the same daemon. */
export const liveHost = (overrides: Omit<TestHostOverrides, 'clock'> = {}): Host => ({ ...testHost(overrides), clock: systemClock })
