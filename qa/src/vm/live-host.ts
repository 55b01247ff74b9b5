/** A host for cases of the virtual machine: everything in memory, but the time, which is the real one. */

import { systemClock } from '@sluice/kit'
import type { Host } from '@sluice/sdk'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'

/** `keyValue` of an earlier one makes it the same daemon after a restart. */
export const liveHost = (overrides: Omit<TestHostOverrides, 'clock'> = {}): Host => ({ ...testHost(overrides), clock: systemClock })
