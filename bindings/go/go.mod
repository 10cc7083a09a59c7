module fairq

go 1.19
