/** What the guest's command runs: the case whose file is named. */
import { resolve } from 'node:path'
import type { VmCase } from '../vm-case.ts'
import { runTests } from './run-tests.ts'

const [file = ''] = process.argv.slice(2)
const { default: definition } = (await import(resolve(file))) as { default: VmCase }
await runTests(definition)
