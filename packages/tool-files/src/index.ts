/** Files of the workspace for the model: read, write, list. The path gate behind `host.workspace` does the guarding. */
import { defineFeature } from '@sluice/sdk'
import { fileList } from './file-list.ts'
import { fileRead } from './file-read.ts'
import { fileWrite } from './file-write.ts'

export default defineFeature({
  id: 'tool-files',
  build: (host) => ({ tools: [fileRead(host), fileWrite(host), fileList(host)] }),
})
