# speed.gp - GB/s against size for each row, beside memcpy; called by plot.sh
#
# data: blocks named "CODEC ISA" with raw bytes, encode, q1, q3, decode, q1, q3, memcpy.
set terminal pngcairo size 1000, 560 font "sans,11" background "white"
set output output
set datafile separator "\t"
stats data using 1 nooutput
set multiplot layout 1, 2 title title font ",14" margins 0.07, 0.98, 0.25, 0.88 spacing 0.07
set logscale xy
set xtics ("1K" 1024, "4K" 4096, "16K" 16384, "64K" 65536, "256K" 262144, "1M" 1048576, "4M" 4194304, "16M" 16777216, "64M" 67108864, "256M" 268435456)
set ytics (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
set yrange [0.15:80]
set grid xtics ytics lt 1 lc rgb "#dddddd"
set xrange [0.75 * STATS_min:1.33 * STATS_max]
set border 3
set tics nomirror
set xlabel "raw bytes of a message"
set key center bottom horizontal maxrows 2
colours = "#1b5e9e #2ca02c #9467bd #d95f02 #e7a400 #8c564b #17becf"
blocks = words(names)
label(i) = system(sprintf("echo '%s' | cut -d, -f%d", list, i))
do for [way = 0:1] {
    set title (way == 0 ? "encode" : "decode") offset 0, -0.5
    if (way == 0) { set ylabel "GB/s of raw bytes" } else { unset ylabel }
    set key at screen 0.28 + 0.5 * way, 0.015
    plot for [i = 1:blocks] data index (i - 1) using 1:(way == 0 ? $2 : $5) with lines lw 2 lc rgb word(colours, i) title ((i > blocks / 2.0) == (way == 1) ? label(i) : ""), \
         for [i = 1:blocks] data index (i - 1) using 1:(way == 0 ? $2 : $5):(way == 0 ? $3 : $6):(way == 0 ? $4 : $7) with yerrorbars pt 7 ps 0.4 lc rgb word(colours, i) notitle, \
         data index 0 using 1:8 with lines lw 2 dt 2 lc rgb "#333333" title (way == 0 ? "memcpy" : ""), \
         data index 0 using 1:9 with points pt 4 ps 0.8 lc rgb "#333333" title (way == 1 ? "best plain copy" : "")
}
unset multiplot
