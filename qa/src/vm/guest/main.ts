/** The program that the guest's command starts: it runs the case in the given file. */
import { resolve } from 'node:path'
import type { VmCase } from '../vm-case.ts'
import { runTests } from './run-tests.ts'

const [file = ''] = process.argv.slice(2)
const { default: definition } = (await import(resolve(file))) as { default: VmCase }
await runTests(definition)
