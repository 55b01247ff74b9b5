/** One finding in a definition, as compilers write it. */
import type { SopProblem } from '@sluice/sop'
import type { Output } from '../context.ts'

export function problemLine(out: Output, { file, line, column, severity, message }: SopProblem): string {
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  return `${place}: ${out.style(severity === 'error' ? 'red' : 'yellow', severity)}: ${message}`
}
