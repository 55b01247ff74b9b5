/** The page as HTML before any script has run, which the build writes into the page of a browser that is signed in as an operator. */
import { renderToString } from 'preact-render-to-string'
import { Shell } from './ui/shell.tsx'

export const shell = (): string => renderToString(<Shell isOperator />)
