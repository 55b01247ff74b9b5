@ The program of the emulated chip. It writes a pattern into RAM and then counts in an endless loop.
@   0x20000000  the text "LIVE RAM PATTERN"
@   0x20000010  a counter that always changes
@   0x20000020  sixteen words: the squares of 0 to 15
@ These commands assemble it; pattern.ts contains the result:
@   arm-none-eabi-as -mcpu=cortex-m4 -mthumb pattern.s -o p.o
@   arm-none-eabi-ld -Ttext=0x08000000 p.o -o p.elf && arm-none-eabi-objcopy -O binary p.elf p.bin
        .syntax unified
        .thumb
        .text
        .word   0x20010000              @ the first stack
        .word   _start + 1
        .rept   14
        .word   stuck + 1               @ every exception
        .endr
        .thumb_func
        .global _start
_start:
        ldr     r0, =0x20000000
        adr     r1, text
        ldmia   r1, {r2-r5}
        stmia   r0, {r2-r5}
        movs    r1, #0
squares:
        mul     r2, r1, r1
        add     r3, r0, r1, lsl #2
        str     r2, [r3, #0x20]
        adds    r1, #1
        cmp     r1, #16
        bne     squares
        movs    r1, #0
count:
        adds    r1, #1
        str     r1, [r0, #0x10]
        b       count
stuck:
        b       stuck
        .align  2
text:   .ascii  "LIVE RAM PATTERN"
        .pool
